import type { Clock } from '../platform/clock.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { ApiKeyRecord } from './api-key-store.ts';
import type { ApiKeys } from './api-keys.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';
import type { AccessClaims, Tokens } from './tokens.ts';

/** Who is calling: a person in a session, or an API key. */
export type Caller =
  | {
      readonly kind: 'session';
      readonly accountId: string;
      readonly username: string;
      readonly sessionId: string;
    }
  | { readonly kind: 'key'; readonly key: ApiKeyRecord };

type Seen =
  | { readonly kind: 'key'; readonly secretHash: string }
  | { readonly kind: 'token'; readonly claims: AccessClaims };

const rememberedCredentials = 20_000;

/** A scheme, and after one space or several its token: RFC 9110, 11.4. */
const credential = /^(bearer|cognito|apikey) +([A-Za-z0-9._~+/=-]{1,2048})$/i;

/**
 * Tells who is calling from the `Authorization` header. The schemes `cognito` and `apikey` are those of
 * existing clients; `Bearer` takes both kinds of credential, which cannot be mistaken for each other.
 */
export class Authenticator {
  readonly #clock: Clock;
  readonly #tokens: Tokens;
  readonly #sessions: Sessions;
  readonly #keys: ApiKeys;
  /**
   * What was found out about headers whose credential proved good. A signature costs many times the rest of a request,
   * and neither it nor the digest of a key ever changes.
   */
  readonly #seen = new Map<string, Seen>();

  constructor(parts: { clock: Clock; tokens: Tokens; sessions: Sessions; keys: ApiKeys }) {
    this.#clock = parts.clock;
    this.#tokens = parts.tokens;
    this.#sessions = parts.sessions;
    this.#keys = parts.keys;
  }

  /** Answers at once when the credential was seen before, which is what nearly every request does. */
  authenticate(header: string | undefined): Caller | Problem | Promise<Caller | Problem> {
    if (header === undefined || header === '') return problem('CREDENTIAL_MISSING');
    const seen = this.#seen.get(header);
    const again = seen === undefined ? undefined : this.#again(seen);
    return again ?? this.#find(header);
  }

  #find(header: string): Problem | Promise<Caller | Problem> {
    const match = credential.exec(header);
    const scheme = match?.[1]?.toLowerCase();
    const secret = match?.[2];
    if (scheme === undefined || secret === undefined) return problem('CREDENTIAL_INVALID');
    const isKey = secret.startsWith('mr_');
    if ((scheme === 'apikey' && !isKey) || (scheme === 'cognito' && isKey)) {
      return problem('CREDENTIAL_INVALID');
    }
    return isKey ? this.#byKey(header, secret) : this.#byToken(header, secret);
  }

  /** Whether a credential is good depends on more than itself: that is asked each time, from memory. */
  #again(seen: Seen): Caller | undefined {
    if (seen.kind === 'key') {
      const key = this.#keys.peek(seen.secretHash);
      return key && { kind: 'key', key };
    }
    if (this.#clock.now() >= seen.claims.expiresAt) return undefined;
    const session = this.#sessions.peek(seen.claims.sessionId);
    return session && callerOf(session);
  }

  async #byKey(header: string, secret: string): Promise<Caller | Problem> {
    const key = await this.#keys.recognise(secret);
    if (key === undefined) return problem('CREDENTIAL_INVALID');
    this.#remember(header, { kind: 'key', secretHash: key.secretHash });
    return { kind: 'key', key };
  }

  async #byToken(header: string, token: string): Promise<Caller | Problem> {
    const claims = await this.#tokens.verify(token);
    const session = claims === undefined ? undefined : await this.#sessions.find(claims.sessionId);
    if (claims === undefined || session?.accountId !== claims.accountId) return problem('CREDENTIAL_INVALID');
    this.#remember(header, { kind: 'token', claims });
    return callerOf(session);
  }

  #remember(header: string, seen: Seen): void {
    if (this.#seen.size >= rememberedCredentials) {
      const oldest = this.#seen.keys().next();
      if (!oldest.done) this.#seen.delete(oldest.value);
    }
    this.#seen.set(header, seen);
  }
}

function callerOf(session: SessionRecord): Caller {
  return {
    kind: 'session',
    accountId: session.accountId,
    username: session.username,
    sessionId: session.id,
  };
}

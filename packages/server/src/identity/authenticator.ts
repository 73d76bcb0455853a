import { type Problem, problem } from '../platform/problem.ts';
import type { ApiKeyRecord } from './api-key-store.ts';
import type { ApiKeys } from './api-keys.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';
import type { Tokens } from './tokens.ts';

/** Who is calling: a person in a session, or an API key. */
export type Caller =
  | {
      readonly kind: 'session';
      readonly accountId: string;
      readonly username: string;
      readonly sessionId: string;
    }
  | { readonly kind: 'key'; readonly key: ApiKeyRecord };

const credential = /^(bearer|cognito|apikey) +([A-Za-z0-9._~+/=-]{1,8192})$/i;

/**
 * Tells who is calling from the `Authorization` header. The schemes `cognito` and `apikey` are those of
 * existing clients; `Bearer` takes both kinds of credential, which cannot be mistaken for each other.
 */
export class Authenticator {
  readonly #tokens: Tokens;
  readonly #sessions: Sessions;
  readonly #keys: ApiKeys;

  constructor(parts: { tokens: Tokens; sessions: Sessions; keys: ApiKeys }) {
    this.#tokens = parts.tokens;
    this.#sessions = parts.sessions;
    this.#keys = parts.keys;
  }

  /** Answers at once when the credential was seen before, which is what nearly every request does. */
  authenticate(header: string | undefined): Caller | Problem | Promise<Caller | Problem> {
    if (header === undefined || header === '') return problem('CREDENTIAL_MISSING');
    const match = credential.exec(header);
    const scheme = match?.[1]?.toLowerCase();
    const secret = match?.[2];
    if (scheme === undefined || secret === undefined) return problem('CREDENTIAL_INVALID');
    const isKey = secret.startsWith('mr_');
    if ((scheme === 'apikey' && !isKey) || (scheme === 'cognito' && isKey)) {
      return problem('CREDENTIAL_INVALID');
    }
    return isKey ? this.#byKey(secret) : this.#byToken(secret);
  }

  #byKey(secret: string): Caller | Promise<Caller | Problem> {
    const known = this.#keys.peek(secret);
    if (known !== undefined) return { kind: 'key', key: known };
    return this.#keys
      .recognise(secret)
      .then((key) => (key === undefined ? problem('CREDENTIAL_INVALID') : { kind: 'key', key }));
  }

  #byToken(token: string): Caller | Promise<Caller | Problem> {
    const claims = this.#tokens.remembered(token);
    const session = claims === undefined ? undefined : this.#sessions.peek(claims.sessionId);
    return session === undefined ? this.#verify(token) : callerOf(session);
  }

  async #verify(token: string): Promise<Caller | Problem> {
    const claims = await this.#tokens.verify(token);
    const session = claims === undefined ? undefined : await this.#sessions.find(claims.sessionId);
    if (session === undefined || session.accountId !== claims?.accountId)
      return problem('CREDENTIAL_INVALID');
    return callerOf(session);
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

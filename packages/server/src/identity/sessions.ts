import type { Database } from '../database/database.ts';
import { LoadingCache } from '../platform/cache.ts';
import type { Clock } from '../platform/clock.ts';
import { digest, keyedDigest } from '../platform/digest.ts';
import { type Random, randomId, randomToken } from '../platform/random.ts';
import { type Account, findAccount, type Queries } from './account-store.ts';
import {
  deleteSession,
  deleteSessionsOf,
  deleteSurplusSessions,
  extendSession,
  findRefreshToken,
  findSession,
  insertRefreshToken,
  insertSession,
  markRotated,
  type SessionRecord,
} from './session-store.ts';
import type { Tokens } from './tokens.ts';

const day = 86_400_000;
/** A client that lost the answer to a refresh may ask again with the same token for this long. */
const rotationGraceMilliseconds = 10_000;
const channel = 'sessions';

export interface SignInResult {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly idToken: string;
}

/**
 * Sessions and their refresh tokens.
 *
 * A session is a row, and everything about it ends with the row: access tokens name their session and are
 * refused once it is gone. A refresh token is used once. Its successor is derived from it with a secret of
 * the service, so that a repeated refresh within the grace answers the very same successor although only
 * digests are stored. A token that comes back after the grace was copied: its session ends.
 */
export class Sessions {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #tokens: Tokens;
  readonly #successorSecret: string;
  readonly #lifetime: number;
  readonly #alive: LoadingCache<SessionRecord>;

  constructor(options: {
    database: Database;
    clock: Clock;
    random: Random;
    tokens: Tokens;
    successorSecret: string;
    lifetimeDays: number;
  }) {
    this.#database = options.database;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#tokens = options.tokens;
    this.#successorSecret = options.successorSecret;
    this.#lifetime = options.lifetimeDays * day;
    this.#alive = new LoadingCache({
      load: (id) => findSession(options.database.query, id, options.clock.now()),
      clock: options.clock,
      trustMilliseconds: options.database.trustMilliseconds,
      capacity: 50_000,
    });
    options.database.listen(
      channel,
      (id) => this.#alive.invalidate(id),
      () => this.#alive.clear(),
    );
  }

  /**
   * Begins a session of somebody who has proved who they are. Undefined when the password or the device
   * that they proved it with was replaced meanwhile: a change of password ends what it did not begin.
   */
  async begin(account: Account): Promise<SignInResult | undefined> {
    const id = randomId(this.#random);
    const refreshToken = randomToken(this.#random);
    const now = this.#clock.now();
    const ended = await this.#database.transaction(async (transaction) => {
      const present = await findAccount(transaction, account.id);
      const proved = present?.password_hash === account.password_hash;
      if (!proved || present.totp_secret !== account.totp_secret) return undefined;
      await insertSession(transaction, { id, accountId: account.id, now, expiresAt: now + this.#lifetime });
      await insertRefreshToken(transaction, { hash: digest(refreshToken), sessionId: id, now });
      return deleteSurplusSessions(transaction, account.id);
    });
    if (ended === undefined) return undefined;
    await this.#announceEnded(ended);
    const subject = {
      accountId: account.id,
      sessionId: id,
      username: account.username,
      email: account.email,
    };
    return { ...(await this.#tokens.issue(subject)), refreshToken };
  }

  /** Rotates a refresh token. Undefined when it is unknown, expired or replayed. */
  async refresh(refreshToken: string): Promise<SignInResult | undefined> {
    const now = this.#clock.now();
    const hash = digest(refreshToken);
    // A made-up token is told from a real one by a plain read, before anything waits for the writer.
    if ((await findRefreshToken(this.#database.query, hash)) === undefined) return undefined;
    const successor = keyedDigest(this.#successorSecret, 'refresh-successor', refreshToken);
    const outcome = await this.#database.transaction(async (transaction) => {
      const known = await findRefreshToken(transaction, hash);
      if (known === undefined) return undefined;
      const session = await findSession(transaction, known.session_id, now);
      if (session === undefined) return undefined;
      if (known.rotated_at === null) {
        await markRotated(transaction, hash, now);
        await insertRefreshToken(transaction, { hash: digest(successor), sessionId: session.id, now });
        await extendSession(transaction, session.id, now, now + this.#lifetime);
        return { session, replayed: false };
      }
      if (Math.abs(now - known.rotated_at) <= rotationGraceMilliseconds) return { session, replayed: false };
      await deleteSession(transaction, session.id);
      return { session, replayed: true };
    });
    if (outcome === undefined) return undefined;
    await this.#database.announce(channel, outcome.session.id);
    if (outcome.replayed) return undefined;
    const subject = { ...outcome.session, sessionId: outcome.session.id };
    return { ...(await this.#tokens.issue(subject)), refreshToken: successor };
  }

  /** Ends the session of a refresh token, whether or not the token was rotated meanwhile. */
  async end(refreshToken: string): Promise<void> {
    const known = await findRefreshToken(this.#database.query, digest(refreshToken));
    if (known === undefined) return;
    await deleteSession(this.#database.query, known.session_id);
    await this.#announceEnded([known.session_id]);
  }

  /**
   * Ends the sessions of an account inside a transaction. What it answers must be given to `ended` after
   * the commit.
   */
  endAll(queries: Queries, accountId: string, exceptSessionId?: string): Promise<string[]> {
    return deleteSessionsOf(queries, accountId, exceptSessionId);
  }

  async ended(sessionIds: readonly string[]): Promise<void> {
    await this.#announceEnded(sessionIds);
  }

  /** The session if it is alive and at hand, without waiting. */
  peek(id: string): SessionRecord | undefined {
    return this.#current(this.#alive.peek(id));
  }

  async find(id: string): Promise<SessionRecord | undefined> {
    return this.#current(await this.#alive.get(id));
  }

  #current(session: SessionRecord | undefined): SessionRecord | undefined {
    return session !== undefined && this.#clock.now() < session.expiresAt ? session : undefined;
  }

  async #announceEnded(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.#database.announce(channel, id);
  }
}

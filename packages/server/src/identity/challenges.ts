import type { ChallengeRow } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';
import { digest } from '../platform/digest.ts';
import { type Random, randomToken } from '../platform/random.ts';
import type { Queries } from './account-store.ts';

export type ChallengeKind = ChallengeRow['kind'];

const lifetimeMilliseconds = 5 * 60_000;
const tries = 5;

/**
 * The unfinished half of a sign-in. A challenge is a token that lives five minutes and is good for one
 * success; five wrong answers end it.
 */
export class Challenges {
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  async open(queries: Queries, accountId: string, kind: ChallengeKind): Promise<string> {
    const session = randomToken(this.#random);
    await queries
      .insertInto('challenges')
      .values({
        id_hash: digest(session),
        account_id: accountId,
        kind,
        tries_left: tries,
        expires_at: this.#clock.now() + lifetimeMilliseconds,
      })
      .execute();
    return session;
  }

  /** Counts one try and answers whose challenge it is, or undefined when it is over. */
  async attempt(
    queries: Queries,
    session: string,
    kind: ChallengeKind,
  ): Promise<{ accountId: string; triesLeft: number } | undefined> {
    const row = await queries
      .updateTable('challenges')
      .set((update) => ({ tries_left: update('tries_left', '-', 1) }))
      .where('id_hash', '=', digest(session))
      .where('kind', '=', kind)
      .where('tries_left', '>', 0)
      .where('expires_at', '>', this.#clock.now())
      .returning(['account_id', 'tries_left'])
      .executeTakeFirst();
    return row && { accountId: row.account_id, triesLeft: row.tries_left };
  }

  /** Takes back a try that was no guess, such as a new password that is too weak. */
  async forgive(queries: Queries, session: string): Promise<void> {
    await queries
      .updateTable('challenges')
      .set((update) => ({ tries_left: update('tries_left', '+', 1) }))
      .where('id_hash', '=', digest(session))
      .execute();
  }

  /** Ends a challenge with success. False when another request just did. */
  async complete(queries: Queries, session: string): Promise<boolean> {
    const result = await queries
      .deleteFrom('challenges')
      .where('id_hash', '=', digest(session))
      .executeTakeFirst();
    return result.numDeletedRows > 0n;
  }
}

export async function deleteExpiredChallenges(queries: Queries, now: number): Promise<void> {
  await queries.deleteFrom('challenges').where('expires_at', '<=', now).execute();
}

import type { MailedCodeRow } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';
import { keyedDigest, sameDigest } from '../platform/digest.ts';
import { type Random, randomDigits } from '../platform/random.ts';
import type { Queries } from './account-store.ts';

export type CodePurpose = MailedCodeRow['purpose'];
/** `spent`: wrong, or too late, and no further try is left. */
export type CodeCheck = 'right' | 'wrong' | 'spent';

const lifetimeMilliseconds = 15 * 60_000;
/**
 * A sign-up code is replaced after five wrong tries. A reset code is not, because anybody may try one: the
 * owner's code would be dead before the owner has read the mail. Tries at it are limited for each address
 * and account instead (see attempts.ts).
 */
const tries: Readonly<Record<CodePurpose, number>> = { 'sign-up': 5, 'password-reset': 1_000_000 };

/** Six-digit codes that prove the ownership of a mailbox. Only a keyed digest of each is kept. */
export class MailedCodes {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #pepper: string;

  constructor(clock: Clock, random: Random, pepper: string) {
    this.#clock = clock;
    this.#random = random;
    this.#pepper = pepper;
  }

  /** Makes a code, in place of the one before. */
  async issue(queries: Queries, accountId: string, purpose: CodePurpose): Promise<string> {
    const code = randomDigits(this.#random, 6);
    const values = {
      code_hash: this.#hash(accountId, purpose, code),
      expires_at: this.#clock.now() + lifetimeMilliseconds,
      tries_left: tries[purpose],
    };
    await queries
      .insertInto('mailed_codes')
      .values({ account_id: accountId, purpose, ...values })
      .onConflict((conflict) => conflict.columns(['account_id', 'purpose']).doUpdateSet(values))
      .execute();
    return code;
  }

  /** Checks a code. The try is counted before the comparison, so tries made at once all count. */
  async check(queries: Queries, accountId: string, purpose: CodePurpose, code: string): Promise<CodeCheck> {
    const row = await queries
      .updateTable('mailed_codes')
      .set((update) => ({ tries_left: update('tries_left', '-', 1) }))
      .where('account_id', '=', accountId)
      .where('purpose', '=', purpose)
      .where('tries_left', '>', 0)
      .where('expires_at', '>', this.#clock.now())
      .returning(['code_hash', 'tries_left'])
      .executeTakeFirst();
    if (row === undefined) return 'spent';
    if (sameDigest(row.code_hash, this.#hash(accountId, purpose, code.trim()))) {
      return (await this.#consume(queries, accountId, purpose, row.code_hash)) ? 'right' : 'spent';
    }
    return row.tries_left > 0 ? 'wrong' : 'spent';
  }

  /** Deletes the code that was given, so that of two who give it at once only one succeeds. */
  async #consume(queries: Queries, accountId: string, purpose: CodePurpose, hash: string): Promise<boolean> {
    const result = await queries
      .deleteFrom('mailed_codes')
      .where('account_id', '=', accountId)
      .where('purpose', '=', purpose)
      .where('code_hash', '=', hash)
      .executeTakeFirst();
    return result.numDeletedRows > 0n;
  }

  #hash(accountId: string, purpose: CodePurpose, code: string): string {
    return keyedDigest(this.#pepper, 'mailed-code', accountId, purpose, code);
  }
}

export async function deleteExpiredCodes(queries: Queries, now: number): Promise<void> {
  await queries.deleteFrom('mailed_codes').where('expires_at', '<=', now).execute();
}

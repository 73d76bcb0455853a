import type { Database } from '../database/database.ts';
import { type Bucket, bucketOf, decide } from '../limits/bucket.ts';
import { giveTokens, readBucket, sweepBuckets, takeTokens } from '../limits/bucket-store.ts';
import type { Clock } from '../platform/clock.ts';
import { keyedDigest } from '../platform/digest.ts';
import { comparable } from '../platform/names.ts';
import { type Problem, problem } from '../platform/problem.ts';

/**
 * Limits on guessing, kept in the database so that a restart does not forget them.
 *
 * Every guess is paid for before it is checked, and the payment is given back when it was right, so any
 * number of guesses at once count. Three buckets are asked:
 *  - the account from this address: a few guesses, then slowly one by one;
 *  - this address, over all accounts;
 *  - the account, over all addresses. This one stops a guess spread over many addresses, and would let
 *    anybody lock the owner out. It therefore does not apply to addresses from which the owner has signed
 *    in before, and the owner elsewhere can reset the password by mail, which makes that address known.
 */
export interface GuessPolicy {
  readonly perAccountAndAddress: Bucket;
  readonly perAddress: Bucket;
  readonly perAccount: Bucket;
}

const minute = 1 / 60;

/**
 * A password can be anything, so guesses at it may come quickly; a code has a million values and is
 * guarded so that a day of guessing has a chance of a few in a hundred thousand. No single address can use
 * up what an account allows to all of them.
 */
export const guessPolicies: Readonly<Record<Secret, GuessPolicy>> = {
  password: {
    perAccountAndAddress: bucketOf({ perSecond: minute, burst: 10 }),
    perAddress: bucketOf({ perSecond: 1, burst: 300 }),
    perAccount: bucketOf({ perSecond: 3 * minute, burst: 100 }),
  },
  'mailed-code': {
    perAccountAndAddress: bucketOf({ perSecond: minute / 30, burst: 10 }),
    perAddress: bucketOf({ perSecond: minute, burst: 150 }),
    perAccount: bucketOf({ perSecond: minute / 10, burst: 30 }),
  },
  'one-time-code': {
    perAccountAndAddress: bucketOf({ perSecond: minute / 15, burst: 10 }),
    perAddress: bucketOf({ perSecond: minute, burst: 150 }),
    perAccount: bucketOf({ perSecond: minute / 10, burst: 30 }),
  },
};

/** What is guessed at. Each has buckets of its own: a mistyped code does not use up the tries at a password. */
export type Secret = 'password' | 'mailed-code' | 'one-time-code';

/** Mails of one purpose that one mailbox can be sent: nobody can flood it or ask for endless codes. */
const mailBucket = bucketOf({ perSecond: 1 / 300, burst: 8 });
/** Accounts and codes that one address can ask for. */
const requestBucket = bucketOf({ perSecond: 1, burst: 500 });

export interface Guess {
  readonly secret: Secret;
  /** What was typed: a bucket of its own does not tell that a username and an email are one account. */
  readonly login: string;
  /** The account, or what was given for one that does not exist: both are limited alike. */
  readonly account: string;
  readonly address: string;
  /** Whether the owner of the account has signed in from this address before. */
  readonly known: boolean;
}

export class Attempts {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #pepper: string;

  constructor(database: Database, clock: Clock, pepper: string) {
    this.#database = database;
    this.#clock = clock;
    this.#pepper = pepper;
  }

  /** Pays for one guess. Undefined when it may be made. */
  async pay(guess: Guess): Promise<Problem | undefined> {
    const paid: [string, Bucket][] = [];
    for (const [key, bucket] of this.#bucketsOf(guess)) {
      const taken = await takeTokens(this.#database.query, key, bucket, this.#now(), 1);
      if (taken === undefined) {
        for (const [paidKey, paidBucket] of paid)
          await giveTokens(this.#database.query, paidKey, paidBucket, 1);
        return this.#refuse(key, bucket);
      }
      paid.push([key, bucket]);
    }
    return undefined;
  }

  /** Gives the payment for a guess back: it was right. */
  async refund(guess: Guess): Promise<void> {
    for (const [key, bucket] of this.#bucketsOf(guess))
      await giveTokens(this.#database.query, key, bucket, 1);
  }

  /** Whether another mail may go to this mailbox; false is no error, the mail is just not sent. */
  async mayMail(email: string, purpose: string): Promise<boolean> {
    const key = this.#key('mail', purpose, comparable(email));
    return (await takeTokens(this.#database.query, key, mailBucket, this.#now(), 1)) !== undefined;
  }

  /** Pays for asking for an account or a code from this address. */
  async payRequest(address: string): Promise<Problem | undefined> {
    const key = this.#key('request', address);
    const taken = await takeTokens(this.#database.query, key, requestBucket, this.#now(), 1);
    return taken === undefined ? this.#refuse(key, requestBucket) : undefined;
  }

  async sweep(): Promise<void> {
    await sweepBuckets(this.#database.query, this.#now());
  }

  #bucketsOf(guess: Guess): [string, Bucket][] {
    const policy = guessPolicies[guess.secret];
    const buckets: [string, Bucket][] = [
      [this.#key('guess-address', guess.secret, guess.address), policy.perAddress],
      [this.#key('guess', guess.secret, guess.login, guess.address), policy.perAccountAndAddress],
    ];
    if (!guess.known)
      buckets.push([this.#key('guess-account', guess.secret, guess.account), policy.perAccount]);
    return buckets;
  }

  async #refuse(key: string, bucket: Bucket): Promise<Problem> {
    const { fullAt, now } = await readBucket(this.#database.query, key, this.#now());
    const { retryAfterSeconds } = decide(bucket, fullAt, now, false);
    return problem('TOO_MANY_ATTEMPTS', `Too many attempts. Try again in ${retryAfterSeconds} seconds.`, {
      retryAfterSeconds,
    });
  }

  /** Keys are digests: the table then tells nothing of who tried what from where. */
  #key(...parts: string[]): string {
    return keyedDigest(this.#pepper, ...parts);
  }

  #now(): number {
    return this.#clock.now() * 1000;
  }
}

/** The part of an address that one person is likely to hold: an IPv4 address, or the /64 of an IPv6 one. */
export function addressPrefix(address: string | undefined): string {
  if (address === undefined) return '';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (!address.includes(':')) return address;
  const [head = '', tail = ''] = address.replace(/%.*$/, '').split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const middle = address.includes('::') ? Array(Math.max(0, 8 - left.length - right.length)).fill('0') : [];
  return [...left, ...middle, ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

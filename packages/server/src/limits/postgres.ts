import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';
import { type Bucket, bucketOf, decide } from './bucket.ts';
import { type BucketState, databaseMicroseconds, readBucket, takeTokens } from './bucket-store.ts';
import type { LimitDecision, Limiter, LimitPolicy } from './limiter.ts';

/** Tokens taken ahead must be used within this time; what is left then is forfeited, never used late. */
const leaseMilliseconds = 1000;
/** A node takes at most this share of a second's tokens ahead, so that one node cannot starve another. */
const leaseShare = 1 / 20;
const mostRounds = 16;

interface Lease {
  tokens: number;
  /** What a token cost: tokens taken under one policy are worth nothing under another. */
  interval: number;
  usableUntil: number;
  /** The shared bucket when the lease was taken, for what callers are told. */
  state: BucketState;
  /** How many requests wait for tokens at this moment. */
  waiting: number;
  refill: Promise<void> | undefined;
}

/**
 * One limit shared by several nodes. The bucket is a row in PostgreSQL, measured by its clock. A node
 * takes a few tokens ahead at a time, so a busy organization costs one statement for many requests while
 * the nodes together never hand out more than the bucket holds.
 */
export function postgresLimiter(database: Kysely<Schema>, clock: Clock): Limiter {
  const leases = new Map<string, Lease>();

  function leaseOf(key: string): Lease {
    let lease = leases.get(key);
    if (lease === undefined) {
      const state = { fullAt: 0, now: 0 };
      lease = { tokens: 0, interval: 0, usableUntil: 0, state, waiting: 0, refill: undefined };
      leases.set(key, lease);
    }
    return lease;
  }

  /** Takes tokens ahead: as many as are wanted, or what there is. */
  async function refill(key: string, lease: Lease, bucket: Bucket, wanted: number): Promise<void> {
    const take = (tokens: number) => takeTokens(database, key, bucket, databaseMicroseconds, tokens);
    const whole = await take(wanted);
    if (whole !== undefined) return keep(lease, bucket, wanted, whole);
    const left = await readBucket(database, key, databaseMicroseconds);
    const { remaining } = decide(bucket, left.fullAt, left.now, false);
    const rest = remaining > 0 ? await take(remaining) : undefined;
    keep(lease, bucket, rest === undefined ? 0 : remaining, rest ?? left);
  }

  function keep(lease: Lease, bucket: Bucket, tokens: number, state: BucketState): void {
    lease.tokens = tokens;
    lease.interval = bucket.interval;
    lease.usableUntil = clock.now() + leaseMilliseconds;
    lease.state = state;
  }

  function use(lease: Lease, bucket: Bucket): LimitDecision | undefined {
    if (lease.tokens <= 0 || lease.interval !== bucket.interval) return undefined;
    if (clock.now() >= lease.usableUntil) return undefined;
    lease.tokens -= 1;
    return decide(bucket, lease.state.fullAt - lease.tokens * bucket.interval, lease.state.now, true);
  }

  async function takeShared(key: string, policy: LimitPolicy): Promise<LimitDecision> {
    const bucket = bucketOf(policy);
    const share = Math.max(1, Math.floor(policy.perSecond * leaseShare));
    const lease = leaseOf(key);
    lease.waiting += 1;
    try {
      // Those who wait for one refill may use it up before this caller's turn; a few rounds settle it.
      for (let round = 0; round < mostRounds; round += 1) {
        const used = use(lease, bucket);
        if (used !== undefined) return used;
        lease.refill ??= refill(
          key,
          lease,
          bucket,
          Math.min(Math.max(share, lease.waiting), policy.burst),
        ).finally(() => {
          lease.refill = undefined;
        });
        await lease.refill;
        if (lease.tokens === 0 && decide(bucket, lease.state.fullAt, lease.state.now, false).remaining === 0)
          break;
      }
      return use(lease, bucket) ?? decide(bucket, lease.state.fullAt, lease.state.now, false);
    } finally {
      lease.waiting -= 1;
    }
  }

  return {
    take(key, policy) {
      const lease = leases.get(key);
      const used = lease === undefined ? undefined : use(lease, bucketOf(policy));
      return used ?? takeShared(key, policy);
    },
    async close() {
      leases.clear();
    },
  };
}

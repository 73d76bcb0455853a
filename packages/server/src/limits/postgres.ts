import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { Clock } from '../platform/clock.ts';
import { type Bucket, bucketOf, decide } from './bucket.ts';
import { databaseMicroseconds, readBucket, takeTokens } from './bucket-store.ts';
import type { LimitDecision, Limiter, LimitPolicy } from './limiter.ts';

/** Tokens taken ahead must be used within this time; what is left then is forfeited, never used late. */
const leaseMilliseconds = 1000;
/** A node takes at most this share of a second's tokens ahead, so that one node cannot starve another. */
const leaseShare = 1 / 20;

interface Lease {
  tokens: number;
  usableUntil: number;
  /** The state of the shared bucket when the lease was taken, for what callers are told. */
  fullAt: number;
  now: number;
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
      lease = { tokens: 0, usableUntil: 0, fullAt: 0, now: 0, refill: undefined };
      leases.set(key, lease);
    }
    return lease;
  }

  async function refill(key: string, lease: Lease, bucket: Bucket, wanted: number): Promise<void> {
    for (const tokens of wanted > 1 ? [wanted, 1] : [1]) {
      const state = await takeTokens(database, key, bucket, databaseMicroseconds, tokens);
      if (state === undefined) continue;
      lease.tokens = tokens;
      lease.usableUntil = clock.now() + leaseMilliseconds;
      lease.fullAt = state.fullAt;
      lease.now = state.now;
      return;
    }
    const state = await readBucket(database, key, databaseMicroseconds);
    lease.tokens = 0;
    lease.fullAt = state.fullAt;
    lease.now = state.now;
  }

  function use(lease: Lease, bucket: Bucket): LimitDecision | undefined {
    if (lease.tokens <= 0 || clock.now() >= lease.usableUntil) return undefined;
    lease.tokens -= 1;
    return decide(bucket, lease.fullAt - lease.tokens * bucket.interval, lease.now, true);
  }

  async function takeShared(key: string, policy: LimitPolicy): Promise<LimitDecision> {
    const bucket = bucketOf(policy);
    const wanted = Math.max(1, Math.floor(policy.perSecond * leaseShare));
    // Those who wait for one refill may use it up before this caller's turn; a few rounds settle it.
    for (let round = 0; round < 64; round += 1) {
      const lease = leaseOf(key);
      const used = use(lease, bucket);
      if (used !== undefined) return used;
      lease.refill ??= refill(key, lease, bucket, wanted).finally(() => {
        lease.refill = undefined;
      });
      await lease.refill;
      if (lease.tokens === 0 && lease.fullAt + bucket.interval - lease.now > bucket.tolerance) break;
    }
    const lease = leaseOf(key);
    return use(lease, bucket) ?? decide(bucket, lease.fullAt, lease.now, false);
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

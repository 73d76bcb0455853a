import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Limiter } from './limiter.ts';

/** What a limiter under test gives the suite: itself, and a way to let time pass. */
export interface LimiterUnderTest {
  readonly limiter: Limiter;
  /** Another node that shares the limit, where the adapter can have one. */
  readonly other?: Limiter;
  pass(milliseconds: number): Promise<void>;
  close(): Promise<void>;
}

const perTen = { perSecond: 10, burst: 100 };

/** What every limiter must do. */
export function limiterSuite(name: string, open: () => Promise<LimiterUnderTest>): void {
  describe(`the ${name} limiter`, () => {
    const opened = async (work: (under: LimiterUnderTest) => Promise<void>) => {
      const under = await open();
      try {
        await work(under);
      } finally {
        await under.close();
      }
    };

    it('allows a burst, refuses the next one and says when to come back', () =>
      opened(async ({ limiter }) => {
        const policy = { perSecond: 1, burst: 10 };
        for (let count = 1; count <= 10; count += 1) {
          const decision = await limiter.take('a', policy);
          assert.equal(decision.allowed, true, `take ${count}`);
          assert.ok(decision.remaining <= 10 - count, `remaining ${decision.remaining} after ${count}`);
        }
        const refused = await limiter.take('a', policy);
        assert.equal(refused.allowed, false);
        assert.equal(refused.remaining, 0);
        assert.equal(refused.retryAfterSeconds, 1);
        assert.ok(refused.resetSeconds >= 9 && refused.resetSeconds <= 10);
      }));

    it('refills at its rate', () =>
      opened(async ({ limiter, pass }) => {
        const policy = { perSecond: 20, burst: 2 };
        while ((await limiter.take('a', policy)).allowed);
        await pass(120);
        assert.equal((await limiter.take('a', policy)).allowed, true);
      }));

    it('keeps keys apart', () =>
      opened(async ({ limiter }) => {
        const policy = { perSecond: 1, burst: 1 };
        assert.equal((await limiter.take('a', policy)).allowed, true);
        assert.equal((await limiter.take('a', policy)).allowed, false);
        assert.equal((await limiter.take('b', policy)).allowed, true);
      }));

    it('gives out no more than the burst to any number at once, and nearly all of it', () =>
      opened(async ({ limiter, other }) => {
        const nodes = other === undefined ? [limiter] : [limiter, other];
        const started = performance.now();
        const decisions = await Promise.all(
          Array.from({ length: 300 }, (_value, index) => nodes[index % nodes.length]?.take('a', perTen)),
        );
        const refilled = Math.ceil(((performance.now() - started) / 1000) * perTen.perSecond);
        const allowed = decisions.filter((decision) => decision?.allowed).length;
        assert.ok(allowed <= perTen.burst + refilled, `${allowed} were allowed`);
        assert.ok(allowed >= perTen.burst - nodes.length, `only ${allowed} were allowed`);
      }));

    it('takes a new policy at once, keeping the part of the burst that is used', () =>
      opened(async ({ limiter }) => {
        while ((await limiter.take('a', { perSecond: 1, burst: 10 })).allowed);
        const raised = await limiter.take('a', { perSecond: 1000, burst: 10_000 });
        assert.ok(raised.retryAfterSeconds <= 1);
      }));
  });
}

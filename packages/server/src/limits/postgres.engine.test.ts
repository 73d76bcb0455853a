import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openTestDatabase } from '../database/postgres/testing.fixture.ts';
import { systemClock } from '../platform/clock.ts';
import { type LimiterUnderTest, limiterSuite } from './limiter.suite.ts';
import { postgresLimiter } from './postgres.ts';

if (process.env.MILLRACE_TEST_POSTGRES_URL === undefined) {
  it('the PostgreSQL limiter', { skip: 'there is no PostgreSQL: run npm run test:engines' });
} else {
  limiterSuite('PostgreSQL', open);
}

async function open(): Promise<LimiterUnderTest> {
  const { database, close } = await openTestDatabase();
  // Two nodes, as far as the limiter can tell: they share nothing but the database.
  const limiter = postgresLimiter(database.query, systemClock);
  const other = postgresLimiter(database.query, systemClock);
  return {
    limiter,
    other,
    // The time is the database's own, so it really has to pass.
    pass: (milliseconds) => pause(milliseconds),
    close: async () => {
      await limiter.close();
      await other.close();
      await close();
    },
  };
}

import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import { deleteUnconfirmedAccounts, forgetAddresses, type Queries } from './account-store.ts';
import { deleteRevokedApiKeys } from './api-key-store.ts';
import type { Attempts } from './attempts.ts';
import { deleteExpiredChallenges } from './challenges.ts';
import { deleteExpiredCodes } from './mailed-codes.ts';
import { deleteExpiredSessions, deleteOldRefreshTokens } from './session-store.ts';
import { unconfirmedMilliseconds } from './sign-up.ts';
import { deleteExpiredSigningKeys } from './signing-key-store.ts';

const day = 86_400_000;

/** Deletes what has expired. Nothing depends on it being done in time: expired rows are ignored anyway. */
export async function sweepIdentity(
  database: Database,
  attempts: Attempts,
  clock: Clock,
  sessionDays: number,
): Promise<void> {
  const queries: Queries = database.query;
  const now = clock.now();
  await deleteExpiredSessions(queries, now);
  await deleteOldRefreshTokens(queries, now - sessionDays * day);
  await deleteExpiredCodes(queries, now - day);
  await deleteExpiredChallenges(queries, now);
  await deleteUnconfirmedAccounts(queries, now - unconfirmedMilliseconds);
  await deleteRevokedApiKeys(queries, now - 30 * day);
  await deleteExpiredSigningKeys(database, now);
  await forgetAddresses(queries, now - 180 * day);
  await attempts.sweep();
}

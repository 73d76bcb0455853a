import type { Clock } from '../platform/clock.ts';
import { type Random, randomToken } from '../platform/random.ts';
import type { Database } from './database.ts';

export const secretNames = [
  'codes',
  'refresh-successors',
  'object-urls',
  'page-tokens',
  'task-keys',
] as const;
export type SecretName = (typeof secretNames)[number];
export type Secrets = Readonly<Record<SecretName, string>>;

/** The service's own secrets, made at the first start and shared by every node of the database. */
export async function loadSecrets(database: Database, clock: Clock, random: Random): Promise<Secrets> {
  for (const name of secretNames) {
    await database.query
      .insertInto('secrets')
      .values({ name, value: randomToken(random, 32), created_at: clock.now() })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute();
  }
  const rows = await database.query.selectFrom('secrets').select(['name', 'value']).execute();
  const found = new Map(rows.map((row) => [row.name, row.value]));
  const value = (name: SecretName): string => {
    const secret = found.get(name);
    if (secret === undefined) throw new Error(`the database has no secret named ${name}`);
    return secret;
  };
  return {
    codes: value('codes'),
    'refresh-successors': value('refresh-successors'),
    'object-urls': value('object-urls'),
    'page-tokens': value('page-tokens'),
    'task-keys': value('task-keys'),
  };
}

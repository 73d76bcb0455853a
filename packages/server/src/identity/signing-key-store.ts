import type { JWK } from 'jose';
import type { Database } from '../database/database.ts';

export interface SigningKeyRecord {
  readonly id: string;
  readonly generation: number;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
  readonly createdAt: number;
  readonly retiresAt: number;
  readonly expiresAt: number;
}

/** Keeps a key unless its generation exists already. */
export async function insertSigningKey(database: Database, key: SigningKeyRecord): Promise<void> {
  await database.query
    .insertInto('signing_keys')
    .values({
      id: key.id,
      generation: key.generation,
      public_jwk: JSON.stringify(key.publicJwk),
      private_jwk: JSON.stringify(key.privateJwk),
      created_at: key.createdAt,
      retires_at: key.retiresAt,
      expires_at: key.expiresAt,
    })
    .onConflict((conflict) => conflict.column('generation').doNothing())
    .execute();
}

/** The keys that still verify. */
export async function listSigningKeys(database: Database, now: number): Promise<SigningKeyRecord[]> {
  const rows = await database.query
    .selectFrom('signing_keys')
    .selectAll()
    .where('expires_at', '>', now)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    generation: row.generation,
    publicJwk: JSON.parse(row.public_jwk),
    privateJwk: JSON.parse(row.private_jwk),
    createdAt: row.created_at,
    retiresAt: row.retires_at,
    expiresAt: row.expires_at,
  }));
}

/** The last generation that was made, also when its key has expired since; 0 when there was none. */
export async function newestGeneration(database: Database): Promise<number> {
  const row = await database.query
    .selectFrom('signing_keys')
    .select('generation')
    .orderBy('generation', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.generation ?? 0;
}

export async function deleteExpiredSigningKeys(database: Database, now: number): Promise<void> {
  await database.query.deleteFrom('signing_keys').where('expires_at', '<=', now).execute();
}

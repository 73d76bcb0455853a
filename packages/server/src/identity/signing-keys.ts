import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import { type Random, randomId } from '../platform/random.ts';
import {
  insertSigningKey,
  listSigningKeys,
  newestGeneration,
  type SigningKeyRecord,
} from './signing-key-store.ts';

export const signingAlgorithm = 'EdDSA';

const day = 86_400_000;
/** How long a key that no longer signs still verifies: longer than any token lives. */
const graceMilliseconds = day;
/** At most one look into the database for an unknown key id in this time, however many tokens name one. */
const refreshMilliseconds = 1000;

export interface SigningKey {
  readonly id: string;
  readonly generation: number;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
  readonly retiresAt: number;
  readonly expiresAt: number;
}

/**
 * The keys that access tokens are signed with. They live in the database, so that every node signs and
 * verifies with the same ones. A key signs until it retires; the next generation is made then, and the old
 * one is published and verifies until no token of it can be alive.
 */
export class SigningKeys {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #lifetime: number;
  #keys = new Map<string, SigningKey>();
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;

  constructor(options: { database: Database; clock: Clock; random: Random; lifetimeDays: number }) {
    this.#database = options.database;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#lifetime = options.lifetimeDays * day;
  }

  /** The key to sign with now, made first if the last one has retired. */
  async current(): Promise<SigningKey> {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const newest = this.#newest();
      if (newest !== undefined && this.#clock.now() < newest.retiresAt) return newest;
      await this.#refresh(true);
      const refreshed = this.#newest();
      if (refreshed !== undefined && this.#clock.now() < refreshed.retiresAt) return refreshed;
      await this.#make((await newestGeneration(this.#database)) + 1);
      await this.#refresh(true);
    }
    throw new Error('no signing key could be made');
  }

  /** The key of this id if it still verifies. */
  async find(id: string): Promise<SigningKey | undefined> {
    const known = this.#alive(id);
    if (known !== undefined) return known;
    await this.#refresh(false);
    return this.#alive(id);
  }

  /** What is published for others to verify with. */
  async published(): Promise<readonly JWK[]> {
    await this.current();
    return [...this.#keys.values()]
      .filter((key) => this.#clock.now() < key.expiresAt)
      .sort((a, b) => b.generation - a.generation)
      .map((key) => ({ ...key.publicJwk, kid: key.id, alg: signingAlgorithm, use: 'sig' }));
  }

  #alive(id: string): SigningKey | undefined {
    const key = this.#keys.get(id);
    return key !== undefined && this.#clock.now() < key.expiresAt ? key : undefined;
  }

  #newest(): SigningKey | undefined {
    let newest: SigningKey | undefined;
    for (const key of this.#keys.values()) {
      if (newest === undefined || key.generation > newest.generation) newest = key;
    }
    return newest;
  }

  async #make(generation: number): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair(signingAlgorithm, { extractable: true });
    const now = this.#clock.now();
    // Another node may make the same generation at the same moment; the first one stays.
    await insertSigningKey(this.#database, {
      id: randomId(this.#random),
      generation,
      publicJwk: await exportJWK(publicKey),
      privateJwk: await exportJWK(privateKey),
      createdAt: now,
      retiresAt: now + this.#lifetime,
      expiresAt: now + this.#lifetime + graceMilliseconds,
    });
  }

  #refresh(must: boolean): Promise<void> {
    // One who comes while the keys are being read waits for them, or the first requests after a start fail.
    const isRecent = this.#clock.now() - this.#refreshedAt < refreshMilliseconds;
    if (!must && isRecent && this.#refreshing === undefined) return Promise.resolve();
    this.#refreshing ??= this.#read().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #read(): Promise<void> {
    this.#refreshedAt = this.#clock.now();
    const records = await listSigningKeys(this.#database, this.#clock.now());
    const keys = new Map<string, SigningKey>();
    for (const record of records) keys.set(record.id, this.#keys.get(record.id) ?? (await importKey(record)));
    this.#keys = keys;
  }
}

async function importKey(record: SigningKeyRecord): Promise<SigningKey> {
  const [privateKey, publicKey] = await Promise.all([
    importJWK(record.privateJwk, signingAlgorithm),
    importJWK(record.publicJwk, signingAlgorithm),
  ]);
  if (privateKey instanceof Uint8Array || publicKey instanceof Uint8Array) {
    throw new Error(`signing key ${record.id} is not a key pair`);
  }
  return { ...record, privateKey, publicKey };
}

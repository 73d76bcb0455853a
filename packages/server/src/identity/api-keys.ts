import type { Database } from '../database/database.ts';
import { LoadingCache } from '../platform/cache.ts';
import type { Clock } from '../platform/clock.ts';
import { digest } from '../platform/digest.ts';
import type { Log } from '../platform/log.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { type Random, randomId } from '../platform/random.ts';
import type { Queries } from './account-store.ts';
import { isApiKey, makeApiKey } from './api-key-format.ts';
import {
  type ApiKeyRecord,
  countApiKeys,
  findApiKey,
  findApiKeyBySecret,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
  revokeApiKeysOf,
  revokeTaskKeys,
  touchApiKey,
} from './api-key-store.ts';

const channel = 'api-keys';
/** When a key was last used is written down at most this often; a listing on this node is exact all the same. */
const touchMilliseconds = 10_000;

/** The keys of organizations: made once, stored as digests, recognised from memory. */
export class ApiKeys {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bySecret: LoadingCache<ApiKeyRecord>;
  readonly #used = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #log: Log;
  /** Keys an organization may have. */
  readonly #most: number;

  constructor(options: { database: Database; clock: Clock; random: Random; log: Log; most: number }) {
    this.#most = options.most;
    this.#log = options.log;
    this.#database = options.database;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#bySecret = new LoadingCache({
      load: (secretHash) => findApiKeyBySecret(options.database.query, secretHash),
      clock: options.clock,
      trustMilliseconds: options.database.trustMilliseconds,
      capacity: 50_000,
    });
    options.database.listen(
      channel,
      (secretHash) => this.#bySecret.invalidate(secretHash),
      () => this.#bySecret.clear(),
    );
    this.#timer = setInterval(() => void this.writeUses(), touchMilliseconds);
    this.#timer.unref();
  }

  /**
   * Makes a key. `allow` is asked inside the same transaction: what it checks, such as that the owner is
   * still a member, holds at the moment the key begins to exist.
   */
  async create(
    key: Omit<ApiKeyRecord, 'id' | 'secretHash' | 'createdAt' | 'lastUsedAt'>,
    allow: (queries: Queries) => Promise<Problem | undefined>,
  ): Promise<{ key: ApiKeyRecord; secret: string } | Problem> {
    const secret = makeApiKey(this.#random);
    const record: ApiKeyRecord = {
      ...key,
      id: randomId(this.#random),
      secretHash: digest(secret),
      createdAt: this.#clock.now(),
      lastUsedAt: undefined,
    };
    const refused = await this.#database.transaction(async (transaction) => {
      const refusal = await allow(transaction);
      if (refusal !== undefined) return refusal;
      if ((await countApiKeys(transaction, key.organizationId)) >= this.#most) {
        return problem('LIMIT_REACHED', `An organization may have ${this.#most} API keys. Revoke one first.`);
      }
      await insertApiKey(transaction, record);
      return undefined;
    });
    return refused ?? { key: record, secret };
  }

  /**
   * Makes the key of a version of a task, inside a transaction. It may publish to the topics given and use
   * state; nobody revokes it by hand.
   */
  async createForTask(
    queries: Queries,
    task: { organizationId: string; taskId: string; description: string; outputs: readonly string[] },
  ): Promise<{ id: string; secret: string }> {
    const secret = makeApiKey(this.#random);
    const id = randomId(this.#random);
    await insertApiKey(queries, {
      id,
      organizationId: task.organizationId,
      secretHash: digest(secret),
      description: task.description,
      ownerType: 'TASK',
      ownerAccountId: undefined,
      ownerUsername: task.taskId,
      revocable: false,
      queueWhitelist: task.outputs,
      expiresAt: undefined,
      createdAt: this.#clock.now(),
      lastUsedAt: undefined,
    });
    return { id, secret };
  }

  /**
   * Revokes keys of tasks, inside a transaction. What it answers must be given to `revoked` after the
   * commit.
   */
  retireTaskKeys(queries: Queries, organizationId: string, ids: readonly string[]): Promise<string[]> {
    return revokeTaskKeys(queries, organizationId, ids, this.#clock.now());
  }

  async list(organizationId: string, ownerAccountId?: string): Promise<ApiKeyRecord[]> {
    await this.writeUses();
    return listApiKeys(this.#database.query, organizationId, ownerAccountId);
  }

  find(organizationId: string, id: string): Promise<ApiKeyRecord | undefined> {
    return findApiKey(this.#database.query, organizationId, id);
  }

  async revoke(key: ApiKeyRecord): Promise<void> {
    await revokeApiKey(this.#database.query, key.id, this.#clock.now());
    await this.revoked([key.secretHash]);
  }

  /**
   * Revokes what a person made in an organization, inside a transaction. What it answers must be given to
   * `revoked` after the commit.
   */
  revokeAllOf(queries: Queries, organizationId: string, accountId: string): Promise<string[]> {
    return revokeApiKeysOf(queries, organizationId, accountId, this.#clock.now());
  }

  async revoked(secretHashes: readonly string[]): Promise<void> {
    for (const secretHash of secretHashes) await this.#database.announce(channel, secretHash);
  }

  /** The key whose secret has this digest if it is good and at hand, without waiting. */
  peek(secretHash: string): ApiKeyRecord | undefined {
    return this.#use(this.#bySecret.peek(secretHash));
  }

  /** The key with this secret, or undefined when there is none, or none any more. */
  async recognise(secret: string): Promise<ApiKeyRecord | undefined> {
    return isApiKey(secret) ? this.#use(await this.#bySecret.get(digest(secret))) : undefined;
  }

  /** Writes down when keys were used. Nobody's request fails because this did. */
  async writeUses(): Promise<void> {
    const used = [...this.#used];
    if (used.length === 0) return;
    this.#used.clear();
    try {
      await this.#database.transaction(async (transaction) => {
        for (const [id, usedAt] of used) await touchApiKey(transaction, id, usedAt);
      });
    } catch (error) {
      for (const [id, usedAt] of used) if (!this.#used.has(id)) this.#used.set(id, usedAt);
      this.#log.warn({ event: 'api-keys.uses', error }, 'the last use of API keys could not be written');
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.writeUses();
  }

  #use(key: ApiKeyRecord | undefined): ApiKeyRecord | undefined {
    if (key === undefined) return undefined;
    const now = this.#clock.now();
    if (key.expiresAt !== undefined && key.expiresAt <= now) return undefined;
    this.#used.set(key.id, now);
    return key;
  }
}

import {
  apiKeyCredentials,
  MillraceError,
  publishMany as publishManyTo,
  publishMessage,
  State,
  Transport,
} from '@millrace/client/parts';

type Entry = NonNullable<Awaited<ReturnType<State['get']>>>;

/** What task code can do with the service around it. */
export interface TaskService {
  publish(
    topic: string,
    message: object | string,
    options: PublishOptions,
  ): Promise<{ messageId: string; duplicate: boolean }>;
  publishMany(topic: string, messages: readonly object[], options: PublishManyOptions): Promise<Published>;
  get(keyParts: readonly string[]): Promise<Entry | undefined>;
  set(keyParts: readonly string[], attributes: Record<string, unknown>, options: SetOptions): Promise<Entry>;
  increment(
    keyParts: readonly string[],
    attribute: string,
    options: { readonly by?: number | undefined; readonly ttlInSec?: number | undefined },
  ): Promise<Entry>;
  delete(keyParts: readonly string[]): Promise<void>;
}

export interface PublishOptions {
  /** Messages of one key keep their order. */
  readonly key: string;
  /** Give the id of the message it was made from, so that a second attempt publishes nothing twice. */
  readonly id?: string | undefined;
}

export interface PublishManyOptions {
  /** A JSON pointer to the key in each message, such as `/user`. */
  readonly keyPath: string;
  /** A JSON pointer to the id in each message. */
  readonly idPath?: string | undefined;
}

export interface Published {
  readonly accepted: number;
  readonly duplicates: number;
}

export interface SetOptions {
  readonly ttlInSec?: number | undefined;
  readonly expectedVersion?: number | undefined;
}

let service: TaskService | undefined;

/** Puts another service in place, as the test kit does; without one, the one around the task is used again. */
export function useService(other: TaskService | undefined): void {
  service = other;
}

function current(): TaskService {
  service ??= connect();
  return service;
}

/** The service that runs this task, from what it put into the environment. */
function connect(): TaskService {
  const { MILLRACE_ENDPOINT, MILLRACE_API_KEY, MILLRACE_ORGANIZATION } = process.env;
  if (MILLRACE_ENDPOINT === undefined)
    throw new Error('This code does not run in a task: MILLRACE_ENDPOINT is not set.');
  // Only what a task needs of the client, so that its bundle stays small.
  const transport = new Transport({
    endpoint: MILLRACE_ENDPOINT,
    credentials: apiKeyCredentials(MILLRACE_API_KEY ?? ''),
  });
  const scope = { transport, organization: MILLRACE_ORGANIZATION };
  const state = new State(scope);
  return {
    publish: (topic, message, options) => publishMessage(scope, topic, message, options),
    publishMany: async (topic, messages, options) => {
      const answer = await publishManyTo(scope, topic, messages, options);
      const [first] = answer.errors;
      if (first !== undefined)
        throw new MillraceError({
          code: first.code,
          status: 200,
          detail: `message ${first.index} ${first.message}`,
        });
      return answer;
    },
    get: (keyParts) => state.get(keyParts),
    set: (keyParts, attributes, options) => state.set(keyParts, attributes, options),
    increment: (keyParts, attribute, options) => state.increment(keyParts, attribute, options),
    delete: (keyParts) => state.delete(keyParts),
  };
}

/**
 * Publishes a message to one of the outputs of the task.
 *
 * @example
 * ```ts
 * await publish('enriched', { page: '/pricing', country: 'NL' }, { key: 'user-42', id: 'c-1001' });
 * ```
 */
export function publish(
  topic: string,
  message: object | string,
  options: PublishOptions,
): Promise<{ messageId: string; duplicate: boolean }> {
  return current().publish(topic, message, options);
}

/**
 * Publishes many messages to one of the outputs of the task in one request. When one of them is refused it
 * throws, and the others are published; with ids a second attempt publishes none of them twice.
 *
 * @example
 * ```ts
 * await publishMany('purchases', [{ id: 'p1', user: 'u1', revenue: 12 }], { keyPath: '/user', idPath: '/id' });
 * ```
 */
export async function publishMany(
  topic: string,
  messages: readonly object[],
  options: PublishManyOptions,
): Promise<Published> {
  if (messages.length === 0) return { accepted: 0, duplicates: 0 };
  const { accepted, duplicates } = await current().publishMany(topic, messages, options);
  return { accepted, duplicates };
}

/** The keyed state of the organization. */
export const state = {
  /**
   * An entry, or undefined.
   *
   * @example
   * ```ts
   * const entry = await state.get(['user', '42']);
   * ```
   */
  get: (keyParts: readonly string[]) => current().get(keyParts),
  /**
   * Writes an entry, replacing all its attributes.
   *
   * @example
   * ```ts
   * await state.set(['user', '42'], { visits: 1 }, { ttlInSec: 3600 });
   * ```
   */
  set: (keyParts: readonly string[], attributes: Record<string, unknown>, options: SetOptions = {}) =>
    current().set(keyParts, attributes, options),
  /**
   * Adds to a number in one step.
   *
   * @example
   * ```ts
   * const { attributes } = await state.increment(['page', '/pricing'], 'views');
   * ```
   */
  increment: (
    keyParts: readonly string[],
    attribute: string,
    options: { readonly by?: number | undefined; readonly ttlInSec?: number | undefined } = {},
  ) => current().increment(keyParts, attribute, options),
  /**
   * Changes an entry from what it is now; when somebody else was faster, the change is made again on what
   * they wrote.
   *
   * @example
   * ```ts
   * await state.update(['cart', '42'], (cart) => ({ ...cart, items: Number(cart.items ?? 0) + 1 }));
   * ```
   */
  update: async (
    keyParts: readonly string[],
    change: (attributes: Readonly<Record<string, unknown>>) => Record<string, unknown>,
    options: { readonly ttlInSec?: number | undefined; readonly attempts?: number } = {},
  ): Promise<Entry> => {
    const { attempts = 20, ttlInSec } = options;
    for (let attempt = 1; ; attempt += 1) {
      const entry = await current().get(keyParts);
      try {
        return await current().set(keyParts, change(entry?.attributes ?? {}), {
          ttlInSec,
          expectedVersion: entry?.version ?? 0,
        });
      } catch (error) {
        const lost = error instanceof Error && 'code' in error && error.code === 'VERSION_MISMATCH';
        if (!lost || attempt >= attempts) throw error;
      }
    }
  },
  /**
   * Deletes an entry; there being none is success.
   *
   * @example
   * ```ts
   * await state.delete(['user', '42']);
   * ```
   */
  delete: (keyParts: readonly string[]) => current().delete(keyParts),
};

import type { NamedType } from '@millrace/contract';
import { MillraceError } from './millrace-error.ts';
import { pages } from './pages.ts';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';

type StateEntry = NamedType<'StateEntry'>;

/** Keyed entries that tasks and programs share. */
export class State {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Reads an entry; undefined when there is none, or no longer.
   *
   * @example
   * ```ts
   * const entry = await millrace.state.get(['user', '42']);
   * console.log(entry?.attributes.visits);
   * ```
   */
  async get(keyParts: readonly string[], options: OrganizationOptions = {}): Promise<StateEntry | undefined> {
    try {
      return await this.#scope.transport.call('getState', {
        path: this.#path(options),
        body: { keyParts: [...keyParts] },
        signal: options.signal,
      });
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'STATE_NOT_FOUND') return undefined;
      throw error;
    }
  }

  /**
   * Writes an entry, replacing all its attributes. With `expectedVersion` only if it has that version (0:
   * only if there is none); otherwise the call fails with the code VERSION_MISMATCH.
   *
   * @example
   * ```ts
   * await millrace.state.set(['user', '42'], { visits: 1 }, { ttlInSec: 3600, expectedVersion: 0 });
   * ```
   */
  set(
    keyParts: readonly string[],
    attributes: Record<string, unknown>,
    options: OrganizationOptions & {
      readonly ttlInSec?: number | undefined;
      readonly expectedVersion?: number | undefined;
    } = {},
  ): Promise<StateEntry> {
    const { ttlInSec, expectedVersion, signal } = options;
    return this.#scope.transport.call('upsertState', {
      path: this.#path(options),
      body: {
        keyParts: [...keyParts],
        attributes,
        ...(ttlInSec === undefined ? {} : { ttlInSec }),
        ...(expectedVersion === undefined ? {} : { expectedVersion }),
      },
      // Replacing all attributes twice is the same as once, unless it is bound to a version.
      repeat: expectedVersion === undefined,
      signal,
    });
  }

  /**
   * Adds to a number of an entry, in one step; the entry is made if there is none.
   *
   * @example
   * ```ts
   * const entry = await millrace.state.increment(['page', '/pricing'], 'views', { by: 2 });
   * ```
   */
  increment(
    keyParts: readonly string[],
    attribute: string,
    options: OrganizationOptions & {
      readonly by?: number | undefined;
      readonly ttlInSec?: number | undefined;
    } = {},
  ): Promise<StateEntry> {
    const { by, ttlInSec, signal } = options;
    return this.#scope.transport.call('incrementState', {
      path: this.#path(options),
      body: {
        keyParts: [...keyParts],
        attribute,
        ...(by === undefined ? {} : { by }),
        ...(ttlInSec === undefined ? {} : { ttlInSec }),
      },
      signal,
    });
  }

  /**
   * Deletes an entry; there being none is success.
   *
   * @example
   * ```ts
   * await millrace.state.delete(['user', '42']);
   * ```
   */
  async delete(keyParts: readonly string[], options: OrganizationOptions = {}): Promise<void> {
    await this.#scope.transport.call('deleteState', {
      path: this.#path(options),
      body: { keyParts: [...keyParts] },
      signal: options.signal,
    });
  }

  /**
   * One page of the entries whose keys begin with whole parts.
   *
   * @example
   * ```ts
   * const { entries, nextCursor } = await millrace.state.page({ keyPrefix: ['user'], limit: 100 });
   * ```
   */
  page(
    request: NamedType<'StateListRequest'> = {},
    options: OrganizationOptions = {},
  ): Promise<NamedType<'StateListResponse'>> {
    return this.#scope.transport.call('listState', {
      path: this.#path(options),
      body: request,
      signal: options.signal,
    });
  }

  /**
   * All entries whose keys begin with whole parts, page after page.
   *
   * @example
   * ```ts
   * for await (const entry of millrace.state.list(['user'])) console.log(entry.mergedKey);
   * ```
   */
  list(
    keyPrefix: readonly string[] = [],
    options: OrganizationOptions = {},
  ): AsyncGenerator<StateEntry, void> {
    return pages(async (cursor: string | undefined) => {
      const page = await this.page(
        { keyPrefix: [...keyPrefix], limit: 1000, ...(cursor === undefined ? {} : { cursor }) },
        options,
      );
      return { entries: page.entries, next: page.nextCursor };
    });
  }

  #path(options: OrganizationOptions): { organizationName: string } {
    return { organizationName: organizationOf(this.#scope, options) };
  }
}

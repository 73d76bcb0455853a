import { mkdir } from 'node:fs/promises';
import type { Catalog } from './catalog.ts';
import { sqlType, systemColumns, typeName } from './columns.ts';
import type { OrganizationReference } from './files.ts';
import { pathInOrganization } from './keys.ts';
import { type LocalFiles, LocalFilesFullError } from './local-files.ts';
import { scannedFile, scanSql } from './scan.ts';
import { LakeUnavailableError } from './unavailable.ts';

/** A table as SQL sees it. */
export interface TableDescription {
  readonly name: string;
  /** Each type as people read it, and as the engine takes it. */
  readonly columns: readonly { readonly name: string; readonly type: string; readonly sqlType: string }[];
}

/** How to read a table, at one moment. */
export interface TableScan {
  /** A SELECT without an end. Paths in it are relative to `root`. */
  readonly sql: string;
  /** The folder of this machine that holds the files of the organization, and of no other. */
  readonly root: string;
  /** Of all files together. */
  readonly bytes: number;
  readonly files: readonly ScanFile[];
  /** The files may go from this machine. Unless called, they stay for an hour. */
  release(): void;
}

export interface ScanFile {
  /** Relative to the root. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly minIngestedAt: number;
  readonly maxIngestedAt: number;
}

/** The tables of organizations, as those see them who query. */
export class LakeTables {
  readonly #catalog: Catalog;
  readonly #localFiles: LocalFiles;

  constructor(parts: { catalog: Catalog; localFiles: LocalFiles }) {
    this.#catalog = parts.catalog;
    this.#localFiles = parts.localFiles;
  }

  /** The tables of an organization, also those whose files are all gone. */
  async describe(organization: OrganizationReference): Promise<TableDescription[]> {
    const tables = await this.#catalog.tables(organization.id);
    return tables.map(({ topicName, columns }) => ({
      name: topicName,
      columns: [...columns, ...systemColumns].map(({ name, type }) => ({
        name,
        type: typeName(type),
        sqlType: sqlType(type),
      })),
    }));
  }

  /** The folder of this machine that holds the files of the organization, and of no other. */
  rootOf(organization: OrganizationReference): string {
    return this.#localFiles.rootOf(organization.name);
  }

  /**
   * How to read the table of a topic; undefined when there is none. The files are on this machine. With a
   * range of times of acceptance, in milliseconds, files without a row of that time are left out.
   */
  async scan(
    organization: OrganizationReference,
    topicName: string,
    signal?: AbortSignal,
    range: { readonly from?: number; readonly to?: number } = {},
  ): Promise<TableScan | undefined> {
    const snapshot = await this.#catalog.snapshot({ organizationId: organization.id, topicName });
    if (snapshot === undefined) return undefined;
    const { table, layouts } = snapshot;
    const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = range;
    const files = snapshot.files.filter((file) => file.maxIngestedAt >= from && file.minIngestedAt <= to);
    const { release } = await this.#provide(files, signal);
    const root = this.#localFiles.rootOf(organization.name);
    await mkdir(root, { recursive: true });
    const paths = files.map((file) => pathInOrganization(file.key));
    return {
      sql: scanSql(
        table.columns,
        files.map((file, index) => scannedFile(file, layouts, paths[index] ?? '')),
      ),
      root,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      files: files.map(({ rows, bytes, minIngestedAt, maxIngestedAt }, index) => ({
        path: paths[index] ?? '',
        rows,
        bytes,
        minIngestedAt,
        maxIngestedAt,
      })),
      release,
    };
  }

  async #provide(files: Parameters<LocalFiles['provide']>[0], signal: AbortSignal | undefined) {
    try {
      return await this.#localFiles.provide(files, signal);
    } catch (error) {
      if (error instanceof LocalFilesFullError)
        throw new LakeUnavailableError(error.message, { cause: error });
      throw error;
    }
  }
}

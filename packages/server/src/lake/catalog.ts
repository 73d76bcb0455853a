import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema.ts';
import type { TopicAddress } from '../events/events.ts';
import type { Column } from './columns.ts';

/**
 * The catalog: which tables there are, what their columns are called, and which files they are made of.
 *
 * A table's columns have ids, and every file carries the ids of its columns, as in Iceberg. A file keeps the
 * layout it was written with: a change of the table rewrites nothing, and `scan.ts` reads each file by what
 * its layout and the table have in common.
 */
export interface Catalog {
  /** The table of a topic; undefined until something was written or a schema was uploaded. */
  table(topic: TopicAddress): Promise<LakeTable | undefined>;
  /** All tables of an organization, by name. */
  tables(organizationId: string): Promise<LakeTable[]>;
  /** The topics of all organizations that have a table. */
  topics(): Promise<TopicAddress[]>;
  /** The live files of a table, each with its layout, as they were at one moment. */
  snapshot(topic: TopicAddress): Promise<Snapshot | undefined>;
  /** Live files in the order of their keys, from a range of keys. The cost is that of the page. */
  page(topic: TopicAddress, range: FileRange): Promise<LakeFile[]>;
  /** A live file. */
  file(topic: TopicAddress, key: string): Promise<LakeFile | undefined>;
  /**
   * Adds files, and the columns that came with them, within a transaction of the caller. Throws
   * `TableChangedError` when the columns must change and the table is not what they were based on.
   */
  addFiles(transaction: Transaction<Schema>, topic: TopicAddress, addition: Addition): Promise<void>;
  /** Puts one file in the place of several, if all of them are still live; false, and nothing is done, otherwise. */
  replaceFiles(topic: TopicAddress, replacement: Replacement): Promise<boolean>;
  /** Removes the live files that a range of keys covers and that are as old as asked for. Answers how many. */
  removeFiles(topic: TopicAddress, removal: Removal): Promise<number>;
  /** Hours that began in a span of time and have at least so many small files, the fullest first. */
  crowdedHours(span: { from: number; below: number; least: number; limit: number }): Promise<CrowdedHour[]>;
  /** Says of files that they are not worth merging any more, however small they are. */
  settleFiles(topic: TopicAddress, keys: readonly string[]): Promise<void>;
  /** The small live files of an hour. */
  smallFiles(topic: TopicAddress, hour: number, limit: number): Promise<LakeFile[]>;
  layouts(topic: TopicAddress, ids: readonly string[]): Promise<Map<string, readonly Column[]>>;
  /** Files that were removed before a time, oldest first; their objects may be deleted. */
  removedFiles(before: number, limit: number): Promise<RemovedFile[]>;
  /** Forgets removed files whose objects are gone. */
  forgetFiles(files: readonly RemovedFile[]): Promise<void>;
  /** Which of these keys of files are in the catalog, live or removed. */
  known(organizationName: string, topicName: string, keys: readonly string[]): Promise<Set<string>>;
  /** Forgets the table, its layouts and schemas, if it has no file left. */
  dropTable(topic: TopicAddress): Promise<boolean>;
  /** The last version of a topic's schema. */
  schema(topic: TopicAddress): Promise<SchemaVersion | undefined>;
  /** All versions, oldest first. */
  schemas(topic: TopicAddress): Promise<SchemaVersion[]>;
  /**
   * Changes the columns of a table and adds a version of its schema. False, and nothing is done, when the
   * table is not the one that the change is based on.
   */
  changeTable(topic: TopicAddress, change: TableChange): Promise<boolean>;
  organizationName(organizationId: string): Promise<string | undefined>;
}

export interface LakeTable extends TopicAddress {
  /** Grows with every change of what follows; 0 for a table that is not there yet. */
  readonly version: number;
  readonly nextColumnId: number;
  /** An uploaded schema says which columns there are; otherwise new fields become new columns. */
  readonly fixed: boolean;
  readonly columns: readonly Column[];
}

export interface LakeFile {
  readonly key: string;
  /** When the hour began in which its rows were accepted. */
  readonly hour: number;
  readonly layoutId: string;
  readonly rows: number;
  readonly bytes: number;
  /** How many rows have something in `_rescued`. */
  readonly rescued: number;
  readonly minIngestedAt: number;
  readonly maxIngestedAt: number;
  readonly createdAt: number;
}

export type NewFile = Omit<LakeFile, 'layoutId' | 'createdAt'>;

export interface Snapshot {
  readonly table: LakeTable;
  readonly files: readonly LakeFile[];
  readonly layouts: ReadonlyMap<string, readonly Column[]>;
}

export interface FileRange {
  readonly from: string;
  readonly below: string;
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface Addition {
  /** The table as it was when the files were written. */
  readonly base: LakeTable;
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  readonly files: readonly NewFile[];
  readonly at: number;
}

export interface Replacement {
  readonly inputs: readonly string[];
  readonly output: NewFile;
  readonly columns: readonly Column[];
  readonly at: number;
}

export interface Removal {
  readonly below: string;
  /** Only files all of whose rows were accepted by then. */
  readonly acceptedBy?: number;
  readonly at: number;
}

export interface CrowdedHour extends TopicAddress {
  readonly hour: number;
  readonly files: number;
}

export interface RemovedFile extends TopicAddress {
  readonly key: string;
}

export interface SchemaVersion {
  readonly version: number;
  readonly origin: 'uploaded' | 'inferred';
  readonly schema: string;
  readonly createdAt: number;
}

export interface TableChange {
  readonly base: LakeTable;
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  readonly fixed: boolean;
  readonly schema?: { readonly text: string; readonly origin: 'uploaded' | 'inferred' } | undefined;
  readonly at: number;
}

/** A file of less than this is merged with its neighbours. */
export const smallBytes = 32 * 1024 * 1024;

/** Somebody changed the table in the meantime: what was based on it must be done again. */
export class TableChangedError extends Error {
  override readonly name = 'TableChangedError';
}

import type { IngestedRange, Statement, TableUse } from './engine.ts';

export interface OrganizationReference {
  readonly id: string;
  readonly name: string;
}

export interface TableDescription {
  readonly name: string;
  readonly columns: readonly DescribedColumn[];
}

export interface DescribedColumn {
  readonly name: string;
  /** As people read it. */
  readonly type: string;
  /** As the engine takes it, where that differs: a field of a type may be called like a word of SQL. */
  readonly sqlType?: string;
}

/** What queries need of the lake. */
export interface LakeTables {
  /** The folder of this machine with the organization's files, and with no others. */
  rootOf(organization: OrganizationReference): string;
  /** Resolves when everything acknowledged before is in the tables. */
  flush(
    organization: OrganizationReference,
    topicNames: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;
  tables(organization: OrganizationReference): Promise<readonly TableDescription[]>;
  /** A SELECT over the files of a table, at least over those of the range; undefined when there is no such table. */
  scan(
    organization: OrganizationReference,
    topicName: string,
    signal: AbortSignal,
    range: IngestedRange | undefined,
  ): Promise<{ readonly sql: string; release(): void } | undefined>;
}

/** The table with the organization's state. */
export const stateTable: TableDescription = {
  name: '_state',
  columns: [
    { name: 'key_parts', type: 'varchar[]' },
    { name: 'merged_key', type: 'varchar' },
    { name: 'attributes', type: 'json' },
    { name: 'version', type: 'bigint' },
    { name: 'expires_at', type: 'timestamp' },
    { name: 'updated_at', type: 'timestamp' },
  ],
};

/** Views that DuckDB brings along and that tell of the engine. */
const engineTables =
  /^(?:duckdb_(?:columns|constraints|databases|indexes|logs|schemas|tables|types|views)|pragma_database_list|sqlite_(?:temp_)?(?:master|schema)|pg_\w+)$/i;

const fileName =
  /[/\\*?]|^[a-z][a-z0-9+.-]*:|\.(?:parquet|csv|tsv|json|jsonl|ndjson|txt|db|duckdb|arrow|xlsx)(?:\.\w+)?$/i;

/** Whether the engine would make something of a name by itself, where no table has it. */
export function hasMeaningToEngine(name: string): boolean {
  return engineTables.test(name) || fileName.test(name);
}

/** Databases that the engine has besides the organization's. */
const engineDatabases = ['system', 'temp'];

/** Whether a table is one of the organization's: unqualified, or under its name. */
function isOwn({ catalog, schema }: TableUse, organizationName: string): boolean {
  const lower = organizationName.toLowerCase();
  const name = engineDatabases.includes(lower) ? 'main' : lower;
  const [outer, inner] = [catalog.toLowerCase(), schema.toLowerCase()];
  if (outer === '') return inner === '' || inner === 'main' || inner === name;
  return outer === name && (inner === 'main' || inner === '');
}

/** The names of the organization's tables that a statement uses, as they are written in it. */
export function namesUsed(statement: Statement, organizationName: string): string[] {
  return [...new Set(statement.tables.filter((use) => isOwn(use, organizationName)).map(({ name }) => name))];
}

/** The topics that a name in a statement may mean: the one of exactly that name, or those that differ in case. */
export function meant(name: string, known: Iterable<string>): string[] {
  const folded = name.toLowerCase();
  const similar: string[] = [];
  for (const each of known) {
    if (each === name) return [each];
    if (each.toLowerCase() === folded) similar.push(each);
  }
  return similar.sort();
}

/** Why a statement may not be run: it names a file, or a table of the engine. */
export function refusedTable(
  statement: Statement,
  organizationName: string,
  known: readonly string[],
): { readonly reason: string; readonly position: number } | undefined {
  const common = new Set(statement.commonNames.map((name) => name.toLowerCase()));
  for (const use of statement.tables) {
    const { name, schema, position } = use;
    if (schema.toLowerCase() === 'information_schema') {
      // It has the statements behind the tables, with the paths of files.
      if (name.toLowerCase() !== 'views') continue;
      return { reason: 'Tables of the engine itself cannot be read.', position };
    }
    if (!isOwn(use, organizationName)) {
      return { reason: `There is no database or schema "${use.catalog || schema}" to read from.`, position };
    }
    if (common.has(name.toLowerCase()) || meant(name, known).length > 0) continue;
    if (engineTables.test(name)) return { reason: 'Tables of the engine itself cannot be read.', position };
    if (fileName.test(name)) return { reason: 'Files cannot be named in a query: name a topic.', position };
  }
  return undefined;
}

/** Names that are close to one that is not there, the closest first. */
export function similarNames(name: string, known: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const mostEdits = (each: string) => Math.max(1, Math.floor(Math.max(wanted.length, each.length) / 3));
  const close = known
    // A name may be as long as a statement, and comparing takes as long as both are.
    .filter((each) => Math.abs(wanted.length - each.length) <= mostEdits(each))
    .map((each) => ({ each, edits: distance(wanted, each.toLowerCase()) }))
    .filter(({ each, edits }) => edits <= mostEdits(each));
  return close
    .sort((one, other) => one.edits - other.edits || (one.each < other.each ? -1 : 1))
    .slice(0, 3)
    .map(({ each }) => each);
}

function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_value, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

import type { LakeFile, LakeTable } from './catalog.ts';
import { limitColumns, unify, withIds } from './column-changes.ts';
import { type Column, columnLimit, firstColumnId, foldName, nestedColumns } from './columns.ts';
import { Typer } from './converter/typer.ts';
import type { Nullability } from './schema-text.ts';

/** What the files say of the column with an id that holds values itself. */
export interface ValueCounts {
  readonly values: number;
  readonly nulls: number;
}

export interface Evidence {
  readonly table: LakeTable;
  readonly files: readonly LakeFile[];
  readonly layouts: ReadonlyMap<string, readonly Column[]>;
  /** Of all files together, by the id of the column. */
  readonly counts: ReadonlyMap<number, ValueCounts>;
  readonly rows: number;
  /** JSON of some of what stands in `_rescued`. */
  readonly rescued: readonly string[];
}

export interface Inference {
  readonly columns: readonly Column[];
  readonly nextColumnId: number;
  readonly isNullable: Nullability;
}

/**
 * What a table looks like by all that is in its files: every field that has a value somewhere, with the type
 * that all its values have in common.
 *
 * A field that stands in a column keeps that column's type when some of its values had to be rescued, unless
 * more of them were rescued than fit: a few texts among numbers do not make the numbers texts.
 */
export function infer(evidence: Evidence): Inference {
  const { table, rows } = evidence;
  const found = new Map<string, { column: Column; present: number }>();
  const counts = countsByPath(evidence);
  const presentOf = (column: Column) => mostPresent(column, [foldName(column.name)], counts);
  for (const column of columnsInOrder(evidence)) {
    const name = foldName(column.name);
    const known = found.get(name);
    const type = known === undefined ? column.type : unify(known.column.type, column.type);
    found.set(name, { column: { ...column, type }, present: presentOf(column) });
  }
  const sample = sampleOf(evidence.rescued);
  for (const { column, times } of sample.columns) {
    const name = foldName(column.name);
    const known = found.get(name);
    // The sample stands for all rescued rows.
    const rescued = times * sample.share(evidence.files);
    if (known === undefined) found.set(name, { column, present: rescued });
    else if (known.present === 0)
      found.set(name, { column: { ...column, name: known.column.name }, present: rescued });
    else {
      const both = unify(known.column.type, column.type);
      const isWider =
        both.kind === 'double' || both.kind === 'timestamp' || both.kind === known.column.type.kind;
      if (isWider || rescued > known.present) {
        found.set(name, { column: { ...known.column, type: both }, present: known.present });
      }
    }
  }
  const wanted = [...found.values()].filter(({ present }) => present > 0).map(({ column }) => column);
  const known = knownColumns(evidence);
  const { columns, nextColumnId } = withIds(limitColumns(wanted, columnLimit), known, table.nextColumnId);
  return {
    columns,
    nextColumnId,
    isNullable: (path) => !isFull(path.map(foldName), columns, counts, rows),
  };
}

/** The table's own first, then what only files have, oldest first. */
function* columnsInOrder({ table, files, layouts }: Evidence): Generator<Column> {
  const used = layoutsInOrder(files, layouts);
  const byName = new Map<string, Column[]>();
  for (const layout of used) {
    for (const column of layout) {
      const some = byName.get(foldName(column.name)) ?? [];
      some.push(column);
      byName.set(foldName(column.name), some);
    }
  }
  for (const column of table.columns) {
    // What a schema says is no evidence: only what is in files is.
    yield* byName.get(foldName(column.name)) ?? [];
    byName.delete(foldName(column.name));
  }
  for (const some of byName.values()) yield* some;
}

function layoutsInOrder(
  files: readonly LakeFile[],
  layouts: ReadonlyMap<string, readonly Column[]>,
): (readonly Column[])[] {
  const oldestFirst = files.toSorted((one, other) => one.createdAt - other.createdAt);
  const ids = new Set(oldestFirst.map(({ layoutId }) => layoutId));
  return [...ids].map((id) => layouts.get(id) ?? []);
}

/** Where ids may be taken from: the table, and the newest of what it had before. */
function knownColumns({ table, files, layouts }: Evidence): Column[] {
  const known = new Map<string, Column>();
  for (const layout of layoutsInOrder(files, layouts)) {
    for (const column of layout) known.set(foldName(column.name), column);
  }
  for (const column of table.columns) known.set(foldName(column.name), column);
  return [...known.values()];
}

const separator = '\0';

/** A column has other ids after a change of its type, and the same path. */
function countsByPath({ files, layouts, counts }: Evidence): Map<string, ValueCounts> {
  const paths = new Map<number, string>();
  const note = (columns: readonly Column[], path: readonly string[]) => {
    for (const column of columns) {
      const own = [...path, foldName(column.name)];
      paths.set(column.id, own.join(separator));
      note(nestedColumns(column.type), own);
    }
  };
  for (const layout of layoutsInOrder(files, layouts)) note(layout, []);
  const byPath = new Map<string, ValueCounts>();
  for (const [id, { values, nulls }] of counts) {
    const path = paths.get(id);
    if (path === undefined) continue;
    const before = byPath.get(path) ?? { values: 0, nulls: 0 };
    byPath.set(path, { values: before.values + values, nulls: before.nulls + nulls });
  }
  return byPath;
}

/** How many values a column has at least. */
function mostPresent(column: Column, path: readonly string[], counts: Map<string, ValueCounts>): number {
  const own = counts.get(path.join(separator));
  const inside = nestedColumns(column.type).map((each) =>
    mostPresent(each, [...path, foldName(each.name)], counts),
  );
  return Math.max(own === undefined ? 0 : own.values - own.nulls, ...inside, 0);
}

/** Whether it is certain that no value of the column is missing. */
function isFull(
  path: readonly string[],
  columns: readonly Column[],
  counts: Map<string, ValueCounts>,
  rows: number,
): boolean {
  const own = counts.get(path.join(separator));
  if (own !== undefined) return own.nulls === 0 && own.values >= rows;
  const column = columnAt(path, columns);
  const inside = column === undefined ? [] : nestedColumns(column.type);
  // A struct is there where a field of it is; a list with nothing in it counts as missing.
  return inside.some((each) => isFull([...path, foldName(each.name)], columns, counts, rows));
}

function columnAt(path: readonly string[], columns: readonly Column[]): Column | undefined {
  const [first, ...rest] = path;
  const column = columns.find(({ name }) => foldName(name) === first);
  return column === undefined || rest.length === 0 ? column : columnAt(rest, nestedColumns(column.type));
}

/** The columns that rescued values would have, and how often each was rescued. */
function sampleOf(rescued: readonly string[]) {
  const typer = new Typer({ columns: [], nextColumnId: firstColumnId, open: true });
  const times = new Map<string, number>();
  for (const text of rescued) {
    typer.type(Buffer.from(text));
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) continue;
    for (const name of Object.keys(value)) times.set(foldName(name), (times.get(foldName(name)) ?? 0) + 1);
  }
  return {
    columns: typer
      .columns()
      .columns.map((column) => ({ column, times: times.get(foldName(column.name)) ?? 0 })),
    share: (files: readonly LakeFile[]) => {
      const all = files.reduce((sum, file) => sum + file.rescued, 0);
      return rescued.length === 0 ? 1 : Math.max(1, all / rescued.length);
    },
  };
}

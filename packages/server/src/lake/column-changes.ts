import { type Column, type ColumnType, countColumns, foldName, nestedColumns, widens } from './columns.ts';

/** What two types have in common without losing a value of either; JSON where they have nothing in common. */
export function unify(one: ColumnType, other: ColumnType): ColumnType {
  if (one.kind === 'struct' && other.kind === 'struct') return unifyStructs(one.fields, other.fields);
  if (one.kind === 'list' && other.kind === 'list') {
    return {
      kind: 'list',
      element: { ...other.element, type: unify(one.element.type, other.element.type) },
    };
  }
  if (one.kind === other.kind) return isLarge(one) ? one : other;
  const kinds = new Set([one.kind, other.kind]);
  const are = (...some: ColumnType['kind'][]) => kinds.isSubsetOf(new Set(some));
  if (are('bigint', 'double')) return { kind: 'double' };
  if (are('date', 'timestamp')) return { kind: 'timestamp' };
  if (are('date', 'varchar') || are('timestamp', 'varchar')) return { kind: 'varchar' };
  return { kind: 'json' };
}

function unifyStructs(some: readonly Column[], others: readonly Column[]): ColumnType {
  const fields = new Map(some.map((field) => [foldName(field.name), field]));
  for (const field of others) {
    const known = fields.get(foldName(field.name));
    const type = known === undefined ? field.type : unify(known.type, field.type);
    fields.set(foldName(field.name), { ...field, type });
  }
  return { kind: 'struct', fields: [...fields.values()] };
}

function isLarge(type: ColumnType): boolean {
  return 'large' in type && type.large === true;
}

/**
 * Gives wanted columns their ids. One that the table has already, of the same type or a narrower one, keeps
 * its id; any other gets a new one, so that no file is ever read by an id that meant something else.
 */
export function withIds(
  wanted: readonly Column[],
  present: readonly Column[],
  nextColumnId: number,
): { columns: Column[]; nextColumnId: number } {
  let next = nextColumnId;
  const fresh = (): number => {
    next += 1;
    return next - 1;
  };
  const assign = (column: Column, known: readonly Column[]): Column => {
    const match = known.find(({ name }) => foldName(name) === foldName(column.name));
    const kept = match !== undefined && isSameOrWider(match.type, column.type) ? match : undefined;
    const id = kept?.id ?? fresh();
    return { id, name: column.name, type: typeWithIds(column.type, kept?.type) };
  };
  const typeWithIds = (type: ColumnType, known: ColumnType | undefined): ColumnType => {
    const inside = known === undefined ? [] : nestedColumns(known);
    if (type.kind === 'struct') {
      return { kind: 'struct', fields: type.fields.map((field) => assign(field, inside)) };
    }
    if (type.kind === 'list') return { kind: 'list', element: assign(type.element, inside) };
    // That a number was too large for a double is a fact about the files, whatever a schema says.
    return known !== undefined && type.kind === known.kind && isLarge(known) ? known : type;
  };
  const columns = wanted.map((column) => assign(column, present));
  return { columns, nextColumnId: next };
}

/** A nested column stays what it is while what is inside changes. */
function isSameOrWider(from: ColumnType, to: ColumnType): boolean {
  if (from.kind === 'struct' || from.kind === 'list') return from.kind === to.kind;
  return widens(from, to);
}

/** As many of the columns as a table may have, nested ones counted. */
export function limitColumns(columns: readonly Column[], limit: number): Column[] {
  let count = 0;
  return columns.filter((column) => {
    count += countColumns([column]);
    return count <= limit;
  });
}

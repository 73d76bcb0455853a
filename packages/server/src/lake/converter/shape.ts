import {
  type Column,
  type ColumnType,
  elementName,
  foldName,
  isColumnName,
  isNested,
  isSystemName,
  type ScalarKind,
} from '../columns.ts';

/**
 * The columns of a table while a file is being written: a tree that changes as messages bring new fields
 * and wider types. What the catalog does not know yet may still become anything; what it knows may only
 * widen.
 */

/** `unknown` is a field that has only ever been null. */
export type ShapeKind = 'unknown' | 'struct' | 'list' | ScalarKind;

export interface Shape {
  kind: ShapeKind;
  /** Whether the catalog has this column, so that files of this type may exist. */
  readonly committed: boolean;
  /** The column's id in the catalog; 0 when it has none yet. */
  readonly id: number;
  /** Of a bigint: has held what a double cannot hold exactly. */
  large: boolean;
  /** Of a json: has held nothing but empty ones of this, so that it may still become a struct or a list. */
  empty: 'object' | 'array' | undefined;
  /** Of a struct: by exact name, those that were only ever null included. */
  fields: Map<string, Field>;
  /** Of a struct: the names that are columns, folded. */
  folds: Set<string>;
  /** Of a struct: the field that came first the last time. */
  first: Field | undefined;
  /** Of a list. */
  element: Shape | undefined;
}

export interface Field {
  readonly name: string;
  /** The name as JSON text, quotes included. */
  readonly key: Uint8Array;
  shape: Shape;
  /** The field that came after this one the last time. */
  next: Field | undefined;
  /** The object that had this field last, to notice one that comes twice. */
  turn: number;
}

export function newShape(kind: ShapeKind, known?: { readonly id: number; readonly large: boolean }): Shape {
  return {
    kind,
    committed: known !== undefined,
    id: known?.id ?? 0,
    large: known?.large ?? false,
    empty: undefined,
    fields: new Map(),
    folds: new Set(),
    first: undefined,
    element: undefined,
  };
}

function newField(name: string, shape: Shape): Field {
  return { name, key: Buffer.from(JSON.stringify(name)), shape, next: undefined, turn: 0 };
}

/** The table itself, as a struct whose fields are its columns. */
export function rootOf(columns: readonly Column[]): Shape {
  return structOf(columns, { id: 0, large: false });
}

function structOf(
  columns: readonly Column[],
  known: { readonly id: number; readonly large: boolean },
): Shape {
  const shape = newShape('struct', known);
  for (const column of columns) putField(shape, column.name, shapeOf(column));
  return shape;
}

function shapeOf({ id, type }: Column): Shape {
  if (type.kind === 'struct') return structOf(type.fields, { id, large: false });
  if (type.kind === 'list') {
    const shape = newShape('list', { id, large: false });
    shape.element = shapeOf(type.element);
    return shape;
  }
  return newShape(type.kind, { id, large: type.large === true });
}

/** Makes a shape what another one is, in place, so that whoever holds it sees it. */
export function become(shape: Shape, other: Shape): void {
  shape.kind = other.kind;
  shape.large = other.large;
  shape.empty = other.empty;
  shape.fields = other.fields;
  shape.folds = other.folds;
  shape.first = other.first;
  shape.element = other.element;
}

/** Gives a struct a field that is a column, or makes one that was only ever null a column. */
export function putField(struct: Shape, name: string, shape: Shape): void {
  const field = struct.fields.get(name);
  if (field === undefined) struct.fields.set(name, newField(name, shape));
  else field.shape = shape;
  struct.folds.add(foldName(name));
}

/** Remembers a field that has only been null, so that it is found next time. */
export function putUnknown(struct: Shape, name: string): void {
  if (!struct.fields.has(name)) struct.fields.set(name, newField(name, newShape('unknown')));
}

/** Whether a struct could have a column of this name beside those it has. */
export function admits(struct: Shape, name: string, atTop: boolean): boolean {
  return isColumnName(name) && !(atTop && isSystemName(name)) && !struct.folds.has(foldName(name));
}

/** How many columns these are, with what is in them. */
export function countShapes(shape: Shape): number {
  let count = shape.kind === 'unknown' ? 0 : 1;
  if (shape.kind === 'struct') for (const field of shape.fields.values()) count += countShapes(field.shape);
  if (shape.element !== undefined) count += countShapes(shape.element);
  return count;
}

/** The columns that a table has now; new ones take their ids from `nextId`. */
export function columnsOf(root: Shape, nextId: () => number): Column[] {
  const columns: Column[] = [];
  for (const { name, shape } of root.fields.values()) {
    if (shape.kind !== 'unknown') columns.push(columnOf(name, shape, nextId));
  }
  return columns;
}

function columnOf(name: string, shape: Shape, nextId: () => number): Column {
  const id = shape.committed ? shape.id : nextId();
  return { id, name, type: typeOf(shape, nextId) };
}

function typeOf(shape: Shape, nextId: () => number): ColumnType {
  if (shape.kind === 'struct') return { kind: 'struct', fields: columnsOf(shape, nextId) };
  if (shape.kind === 'list' && shape.element !== undefined) {
    return { kind: 'list', element: columnOf(elementName, shape.element, nextId) };
  }
  if (shape.kind === 'list' || shape.kind === 'unknown') return { kind: 'json' };
  return shape.kind === 'bigint' && shape.large ? { kind: 'bigint', large: true } : { kind: shape.kind };
}

/** Whether a type has a timestamp anywhere in it. */
export function hasTimestamp(type: ColumnType): boolean {
  if (!isNested(type)) return type.kind === 'timestamp';
  if (type.kind === 'list') return hasTimestamp(type.element.type);
  return type.fields.some((field) => hasTimestamp(field.type));
}

import { foldName } from '../columns.ts';
import { levelLimit, nestedFieldLimit } from './limits.ts';
import { momentInText } from './moment.ts';
import type { Parsed, ParsedArray, ParsedObject } from './parse.ts';
import { admits, newShape, putField, type Shape } from './shape.ts';

/** The shape of a value that is not null: what a column is made of that has it first. */
export function learn(value: Parsed, text: string, level: number): Shape {
  return shapeOf(value, text, level) ?? newShape('unknown');
}

/** Undefined for null, which is of every type. */
function shapeOf(value: Parsed, text: string, level: number): Shape | undefined {
  switch (value.kind) {
    case 'null':
      return undefined;
    case 'boolean':
      return newShape('boolean');
    case 'integer':
      return newShape(isInt64(text.slice(value.start, value.end)) ? 'bigint' : 'double');
    case 'real':
      return newShape('double');
    case 'string':
      return newShape(stringKind(text, value));
    case 'opaque':
      return newShape('json');
    case 'object':
      return level >= levelLimit || value.members.length > nestedFieldLimit
        ? newShape('json')
        : structOf(value, text, level);
    case 'array':
      return level >= levelLimit ? newShape('json') : listOf(value, text, level);
  }
}

function structOf(value: ParsedObject, text: string, level: number): Shape {
  const struct = newShape('struct');
  for (const { name, value: inner } of value.members) {
    const shape = shapeOf(inner, text, level + 1);
    if (shape === undefined) continue;
    if (struct.fields.has(name) || admits(struct, name, false)) putField(struct, name, shape);
  }
  if (struct.fields.size > 0) return struct;
  const isEmpty = value.members.every((member) => member.value.kind === 'null');
  return emptyJson(isEmpty ? 'object' : undefined);
}

function listOf(value: ParsedArray, text: string, level: number): Shape {
  let element: Shape | undefined;
  for (const item of value.elements) {
    const shape = shapeOf(item, text, level + 1);
    if (shape === undefined) continue;
    element = element === undefined ? shape : unify(element, shape);
    if (element.kind === 'json' && element.empty === undefined) return element;
  }
  if (element === undefined) return emptyJson('array');
  if (element.kind === 'json') return newShape('json');
  const list = newShape('list');
  list.element = element;
  return list;
}

function emptyJson(container: 'object' | 'array' | undefined): Shape {
  const shape = newShape('json');
  shape.empty = container;
  return shape;
}

/** The narrowest shape that has the values of both; JSON when nothing narrower does. */
function unify(one: Shape, other: Shape): Shape {
  if (one.kind === 'struct' && other.kind === 'struct') return unifyStructs(one, other);
  if (one.kind === 'list' && other.kind === 'list') return unifyLists(one, other);
  if (one.kind === 'json' || other.kind === 'json') return unifyJson(one, other);
  if (one.kind === other.kind) return one;
  const kinds = new Set([one.kind, other.kind]);
  if (kinds.has('bigint') && kinds.has('double')) return newShape('double');
  if (kinds.has('date') && kinds.has('timestamp')) return newShape('timestamp');
  if (kinds.has('varchar') && (kinds.has('date') || kinds.has('timestamp'))) return newShape('varchar');
  return newShape('json');
}

function unifyStructs(one: Shape, other: Shape): Shape {
  for (const [name, field] of other.fields) {
    const known = one.fields.get(name);
    if (known !== undefined) known.shape = unify(known.shape, field.shape);
    else if (!one.folds.has(foldName(name))) putField(one, name, field.shape);
  }
  return one.folds.size > nestedFieldLimit ? newShape('json') : one;
}

function unifyLists(one: Shape, other: Shape): Shape {
  if (one.element === undefined || other.element === undefined) return newShape('json');
  const element = unify(one.element, other.element);
  if (element.kind === 'json') return newShape('json');
  one.element = element;
  return one;
}

/** What was empty takes the shape of what is not. */
function unifyJson(one: Shape, other: Shape): Shape {
  const [json, rest] = one.kind === 'json' ? [one, other] : [other, one];
  if (rest.kind === 'json') return json.empty === rest.empty ? json : newShape('json');
  if (json.empty === 'object' && rest.kind === 'struct') return rest;
  if (json.empty === 'array' && rest.kind === 'list') return rest;
  return newShape('json');
}

function isInt64(source: string): boolean {
  if (source.length < 16) return true;
  return source.length <= 20 && BigInt.asIntN(64, BigInt(source)) === BigInt(source);
}

function stringKind(text: string, { start, end }: Parsed): 'date' | 'timestamp' | 'varchar' {
  const moment = momentInText(text, start + 1, end - 1);
  if (moment === 'none') return 'varchar';
  return moment === 'date' ? 'date' : 'timestamp';
}

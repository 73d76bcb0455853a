import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unify, withIds } from './column-changes.ts';
import { type Column, type ColumnType, typeName } from './columns.ts';
import { readJsonSchema } from './json-schema.ts';
import { writeJsonSchema } from './schema-text.ts';

async function columnsOf(schema: unknown): Promise<Record<string, string>> {
  const reading = await readJsonSchema(typeof schema === 'string' ? schema : JSON.stringify(schema));
  if ('refusal' in reading) assert.fail(reading.refusal);
  return Object.fromEntries(reading.columns.map(({ name, type }) => [name, typeName(type)]));
}

async function refusalOf(schema: unknown): Promise<string> {
  const reading = await readJsonSchema(typeof schema === 'string' ? schema : JSON.stringify(schema));
  assert.ok('refusal' in reading, JSON.stringify(schema));
  return reading.refusal;
}

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('an uploaded schema', { timeout: 60_000 }, () => {
  it('gives columns their types and their order', async () => {
    const schema = object({
      z: { type: 'string' },
      a: { type: 'integer' },
      n: { type: 'number' },
      b: { type: 'boolean' },
      t: { type: 'string', format: 'date-time' },
      d: { type: 'string', format: 'date' },
      u: { type: 'string', format: 'uuid' },
      l: { type: 'array', items: { type: ['integer', 'null'] } },
      o: object({ x: { type: 'integer' }, y: { type: 'array', items: object({ z: { type: 'string' } }) } }),
      any: {},
      yes: true,
    });
    const found = await columnsOf(schema);
    assert.deepEqual(found, {
      z: 'varchar',
      a: 'bigint',
      n: 'double',
      b: 'boolean',
      t: 'timestamp',
      d: 'date',
      u: 'varchar',
      l: 'bigint[]',
      o: 'struct(x bigint, y struct(z varchar)[])',
      any: 'json',
      yes: 'json',
    });
    assert.deepEqual(Object.keys(found).slice(0, 3), ['z', 'a', 'n']);
  });

  it('may say the same in other ways', async () => {
    const found = await columnsOf({
      $schema: 'http://json-schema.org/draft-07/schema#',
      $defs: {
        name: { type: 'string' },
        tree: object({ left: { $ref: '#/$defs/tree' }, v: { type: 'integer' } }),
      },
      properties: {
        nullable: { type: ['integer', 'null'] },
        either: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        number: { type: ['integer', 'number'] },
        mixed: { type: ['integer', 'string'] },
        named: { $ref: '#/$defs/name' },
        all: { allOf: [object({ a: { type: 'string' } }), object({ b: { type: 'integer' } })] },
        words: { enum: ['a', 'b', null] },
        one: { const: 5 },
        untyped: { properties: { x: { type: 'string' } } },
        nothing: { type: 'null' },
        empty: object({}),
        list: { type: 'array' },
        circle: { $ref: '#/$defs/tree' },
      },
    });
    const { circle, ...rest } = found;
    assert.deepEqual(rest, {
      nullable: 'bigint',
      either: 'bigint',
      number: 'double',
      mixed: 'json',
      named: 'varchar',
      all: 'struct(a varchar, b bigint)',
      words: 'varchar',
      one: 'bigint',
      untyped: 'struct(x varchar)',
      empty: 'json',
      list: 'json',
    });
    assert.match(circle ?? '', /^struct\(left struct\(.*json.*v bigint\)$/);
  });

  it('has no column for what cannot be one', async () => {
    const schema =
      '{"properties":{"a":{"type":"string"},"A":{"type":"integer"},"_key":{"type":"string"},"__proto__":{"type":"integer"},"":{"type":"string"}}}';
    assert.deepEqual(Object.keys(await columnsOf(schema)), ['a', '__proto__']);
    assert.deepEqual(await columnsOf({ type: 'object' }), {});
    assert.deepEqual(await columnsOf({}), {});
  });

  it('that grow without end when references are followed are refused soon', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 20 }, (_value, index) => [`p${index}`, { $ref: '#' }]),
    );
    assert.match(await refusalOf({ type: 'object', properties }), /too large/);
  });

  it('is refused with a reason when it is none', async () => {
    for (const schema of ['', 'x', '[]', '"text"', 'true', '5', 'null']) await refusalOf(schema);
    for (const schema of [
      { type: 'text' },
      { type: 'string' },
      { type: 'array', items: {} },
      { enum: ['a'] },
      object({ a: { type: 5 } }),
      object({ a: 'string' }),
      object({ a: { type: 'string', minLength: -1 } }),
      { properties: [] },
      { $schema: 'https://example.com/mine', type: 'object' },
      { $schema: 5, type: 'object' },
      object({ a: { $ref: 'https://example.com/other.json' } }),
      object({ a: { $ref: '#/$defs/missing' } }),
      { $ref: '#', required: 'a' },
    ]) {
      assert.match(await refusalOf(schema), /^The schema .*\.$/);
    }
  });

  it('stands schemas that are made to hurt', async () => {
    const deep = `${'{"properties":{"a":'.repeat(3_000)}{}${'}}'.repeat(3_000)}`;
    await readJsonSchema(deep).catch((error: unknown) => assert.ok(error instanceof RangeError));
    const wide = object(
      Object.fromEntries(Array.from({ length: 12_000 }, (_value, n) => [`f${n}`, { type: 'string' }])),
    );
    assert.equal(Object.keys(await columnsOf(wide)).length, 10_000);
    const bomb = {
      $defs: Object.fromEntries(
        Array.from({ length: 30 }, (_value, n) => [
          `d${n}`,
          object({ a: { $ref: `#/$defs/d${n + 1}` }, b: { $ref: `#/$defs/d${n + 1}` } }),
        ]).concat([['d30', { type: 'string' }]] as never),
      ),
      $ref: '#/$defs/d0',
    };
    const began = performance.now();
    await columnsOf(bomb);
    assert.ok(performance.now() - began < 2_000);
  });
});

describe('the schema of columns', () => {
  it('says what they hold, and is read back as the same columns', async () => {
    const schema = object({
      a: { type: 'integer' },
      t: { type: 'string', format: 'date-time' },
      o: object({ x: { type: 'array', items: { type: 'string' } } }),
      any: {},
    });
    const reading = await readJsonSchema(JSON.stringify(schema));
    assert.ok('columns' in reading);
    const text = writeJsonSchema(reading.columns, (path) => path[0] !== 'a');
    assert.deepEqual(JSON.parse(text), {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        a: { type: 'integer' },
        t: { type: ['string', 'null'], format: 'date-time' },
        o: {
          type: ['object', 'null'],
          properties: { x: { type: ['array', 'null'], items: { type: ['string', 'null'] } } },
        },
        any: {},
      },
      required: ['a'],
    });
    const again = await readJsonSchema(text);
    assert.deepEqual(again, reading);
  });
});

describe('the ids of columns', () => {
  const scalar = (id: number, name: string, kind: 'bigint' | 'double' | 'varchar'): Column => ({
    id,
    name,
    type: { kind },
  });

  it('stay where a type is the same or wider, and are new where it is another', () => {
    const present: Column[] = [
      scalar(16, 'same', 'bigint'),
      scalar(17, 'wider', 'bigint'),
      scalar(18, 'other', 'varchar'),
      {
        id: 19,
        name: 'o',
        type: { kind: 'struct', fields: [scalar(20, 'x', 'bigint'), scalar(21, 'y', 'varchar')] },
      },
    ];
    const wanted: Column[] = [
      {
        id: 0,
        name: 'o',
        type: { kind: 'struct', fields: [scalar(0, 'x', 'varchar'), scalar(0, 'y', 'varchar')] },
      },
      scalar(0, 'other', 'bigint'),
      scalar(0, 'new', 'bigint'),
      scalar(0, 'wider', 'double'),
      scalar(0, 'Same', 'bigint'),
    ];
    const { columns, nextColumnId } = withIds(wanted, present, 30);
    assert.deepEqual(columns, [
      {
        id: 19,
        name: 'o',
        type: { kind: 'struct', fields: [scalar(30, 'x', 'varchar'), scalar(21, 'y', 'varchar')] },
      },
      scalar(31, 'other', 'bigint'),
      scalar(32, 'new', 'bigint'),
      scalar(17, 'wider', 'double'),
      scalar(16, 'Same', 'bigint'),
    ]);
    assert.equal(nextColumnId, 33);
  });

  it('of a number that a double cannot hold stay with integers', () => {
    const large: Column = { id: 16, name: 'n', type: { kind: 'bigint', large: true } };
    assert.deepEqual(withIds([scalar(0, 'n', 'bigint')], [large], 17).columns, [large]);
    assert.equal(withIds([scalar(0, 'n', 'double')], [large], 17).columns[0]?.id, 17);
  });

  it('belong to types that have something in common', () => {
    const kinds = (one: ColumnType['kind'], other: ColumnType['kind']) => {
      const of = (kind: ColumnType['kind']): ColumnType =>
        kind === 'struct'
          ? { kind, fields: [] }
          : kind === 'list'
            ? { kind, element: scalar(0, 'element', 'bigint') }
            : { kind };
      return [unify(of(one), of(other)).kind, unify(of(other), of(one)).kind];
    };
    assert.deepEqual(kinds('bigint', 'double'), ['double', 'double']);
    assert.deepEqual(kinds('date', 'timestamp'), ['timestamp', 'timestamp']);
    assert.deepEqual(kinds('date', 'varchar'), ['varchar', 'varchar']);
    assert.deepEqual(kinds('bigint', 'varchar'), ['json', 'json']);
    assert.deepEqual(kinds('struct', 'list'), ['json', 'json']);
    assert.deepEqual(kinds('json', 'bigint'), ['json', 'json']);
  });
});

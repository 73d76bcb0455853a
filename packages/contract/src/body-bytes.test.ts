import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mostBytes } from './body-bytes.ts';
import { buildContract, listOperations, type OperationId } from './index.ts';

const contract = buildContract();
const { limits, types } = contract;

/** Content whose bytes are counted once it is read, where no schema can count them. */
const counted = new Map<OperationId, number>([
  ['upsertState', limits.stateAttributesBytes],
  ['getState', limits.stateKeyBytes],
  ['listState', limits.stateKeyBytes],
  ['deleteState', limits.stateKeyBytes],
  ['incrementState', limits.stateKeyBytes],
  ['updateTopicSchema', limits.schemaBytes],
  ['submitQuery', limits.sqlBytes],
]);

describe('the limit of a body', () => {
  it('lets through whatever its schema does, with every character escaped', () => {
    for (const { id, body, limits: own } of listOperations(contract)) {
      // The limit of an event is that of the request which carries it.
      if (body === undefined || 'raw' in body || id === 'invoke') continue;
      const limit = own?.bodyBytes ?? limits.requestBytes;
      const content = counted.get(id);
      const most = content === undefined ? mostBytes(body.schema) : 6 * content;
      assert.ok(most < limit, `${id}: ${most} bytes and a limit of ${limit}`);
    }
  });

  it('is never so large that a few requests fill the memory', () => {
    for (const { id, limits: own } of listOperations(contract)) {
      assert.ok((own?.bodyBytes ?? limits.requestBytes) <= limits.batchBytes, id);
    }
  });
});

describe('the most bytes of a value', () => {
  const escaped = (text: string) =>
    text.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

  it('are those of the longest texts, written in the longest way', () => {
    const names = Array.from({ length: 1000 }, () => escaped('😀'.repeat(256)));
    const list = `[${names.map((name) => `"${name}"`).join(',')}]`;
    const { blacklist } = types.Topic.properties.store.properties;
    const most = mostBytes(blacklist);
    assert.ok(list.length <= most && list.length > most * 0.99, `${list.length} of ${most}`);
  });

  it('are infinite where nothing bounds them', () => {
    assert.equal(mostBytes(types.StateUpsertRequest), Infinity);
    assert.equal(mostBytes({ type: 'string' }), Infinity);
    assert.equal(mostBytes({ type: 'array', items: { type: 'integer' } }), Infinity);
    assert.equal(mostBytes({}), Infinity);
  });
});

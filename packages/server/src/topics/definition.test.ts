import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { definitionErrors, type StoreKey, type TopicDefinition } from './definition.ts';

const primary: StoreKey = { tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: '' };
const index = (tableType: 'GSI' | 'LSI', indexNumber?: number): StoreKey => ({
  tableType,
  pkParts: ['id'],
  rangePrefix: '',
  ...(indexNumber === undefined ? {} : { indexNumber }),
});
const stored = (...keys: StoreKey[]): TopicDefinition => ({ store: { keys, ttlInSec: 1 } });

describe('a topic definition', () => {
  it('may have nothing, or everything once', () => {
    const fine: TopicDefinition[] = [
      {},
      { batch: {} },
      { streams: [] },
      { streams: [{ name: 'a' }, { name: 'A' }, { name: 'a.' }] },
      stored(primary),
      stored(index('GSI', 1), primary, index('GSI', 0), index('LSI', 1)),
    ];
    for (const definition of fine) assert.deepEqual(definitionErrors(definition), []);
  });

  it('is told every mistake with its place', () => {
    const wrong: [TopicDefinition, string[]][] = [
      [{ streams: [{ name: 'a' }, { name: 'a' }, { name: 'a' }] }, ['/streams/1/name', '/streams/2/name']],
      [stored(), ['/store/keys']],
      [stored(index('GSI', 1)), ['/store/keys']],
      [stored(primary, primary), ['/store/keys']],
      [stored({ ...primary, indexNumber: 1 }), ['/store/keys/0/indexNumber']],
      [stored(primary, index('LSI')), ['/store/keys/1/indexNumber']],
      [stored(index('LSI', 1), primary, index('LSI', 1)), ['/store/keys/2']],
      [
        { streams: [{ name: 'a' }, { name: 'a' }], ...stored(index('GSI')) },
        ['/streams/1/name', '/store/keys/0/indexNumber', '/store/keys'],
      ],
    ];
    for (const [definition, places] of wrong) {
      assert.deepEqual(
        definitionErrors(definition).map((error) => error.pointer),
        places,
      );
      assert.deepEqual(
        definitionErrors(definition, '/topic').map((error) => error.pointer),
        places.map((place) => `/topic${place}`),
      );
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pointerReader } from './pointer.ts';
import { chanceOf, pick, randomJson } from './random-json.fixture.ts';

/** The places of a document and what is there, found by walking over all of it. */
function placesIn(value: unknown, pointer = ''): Map<string, unknown> {
  const found = new Map([[pointer, value]]);
  if (typeof value !== 'object' || value === null) return found;
  // The entries of arrays are named by their indexes.
  for (const [name, inside] of Object.entries(value)) {
    const escaped = name.replace(/~/g, '~0').replace(/\//g, '~1');
    for (const [place, there] of placesIn(inside, `${pointer}/${escaped}`)) found.set(place, there);
  }
  return found;
}

describe('a JSON pointer', () => {
  it('reads the examples of its standard', () => {
    const document = JSON.parse(
      '{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\\\j":5,"k\\"l":6," ":7,"m~n":8}',
    );
    const expected: Record<string, unknown> = {
      '': document,
      '/foo': ['bar', 'baz'],
      '/foo/0': 'bar',
      '/': 0,
      '/a~1b': 1,
      '/c%d': 2,
      '/e^f': 3,
      '/g|h': 4,
      '/i\\j': 5,
      '/k"l': 6,
      '/ ': 7,
      '/m~0n': 8,
    };
    for (const [pointer, value] of Object.entries(expected)) {
      assert.deepEqual(pointerReader(pointer)(document), value, pointer);
    }
  });

  it('finds nothing where nothing is, and never what a document only inherits', () => {
    const document = JSON.parse('{"list":["x"],"text":"abc","none":null,"~1":"both"}');
    for (const pointer of [
      '/missing',
      '/list/1',
      '/list/-',
      '/list/00',
      '/list/+0',
      '/list/0.0',
      '/list/1e0',
      '/list/-1',
      '/list/ 0',
      '/list/',
      '/list/length',
      '/list/999999999999999999999',
      '/list/at',
      '/text/0',
      '/text/length',
      '/none/a',
      '/~1',
      '/constructor',
      '/constructor/name',
      '/__proto__',
      '/toString',
      '/hasOwnProperty/call',
    ]) {
      assert.equal(pointerReader(pointer)(document), undefined, pointer);
    }
    assert.equal(pointerReader('/~01')(document), 'both');
    for (const scalar of [null, 1, 'text', true]) assert.equal(pointerReader('/a')(scalar), undefined);
  });

  it('reads fields of any name when the document has them', () => {
    const document = JSON.parse('{"__proto__":{"id":1},"constructor":{"name":2},"toString":3}');
    assert.equal(pointerReader('/__proto__/id')(document), 1);
    assert.equal(pointerReader('/constructor/name')(document), 2);
    assert.equal(pointerReader('/toString')(document), 3);
  });

  it('agrees with walking over the document, for any document', () => {
    const chance = chanceOf(6901);
    let found = 0;
    for (let round = 0; round < 2000; round += 1) {
      const document: unknown = JSON.parse(randomJson(chance));
      const places = placesIn(document);
      const other = placesIn(JSON.parse(randomJson(chance)));
      for (const [place, value] of places) assert.deepEqual(pointerReader(place)(document), value, place);
      for (const place of other.keys()) {
        assert.deepEqual(
          pointerReader(place)(document),
          places.get(place),
          `${place} of ${JSON.stringify(document)}`,
        );
      }
      const made = `${pick(chance, [...places.keys()])}/${pick(chance, ['0', '~0', 'a'])}`;
      assert.deepEqual(pointerReader(made)(document), places.get(made));
      found += places.size;
    }
    assert.ok(found > 5000, `${found} places`);
  });
});

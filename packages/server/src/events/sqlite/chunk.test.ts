import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entry, newTopic } from '../entries.suite.ts';
import type { AppendEntry } from '../events.ts';
import { Batch, mostBatchBytes, prefixBytes } from './batch.ts';
import { type Chunk, ChunkPacker, type ChunkRecord, chunkBytes, openChunk, skipRecords } from './chunk.ts';
import { attributesOf, bodyLength, recordEnd } from './record.ts';

const topic = newTopic();
const attributes = [Buffer.from('["a",[],true,false]'), Buffer.from('["b",["s"],false,true]')];

/** The records of entries as they lie in a batch. */
function recordsOf(entries: readonly AppendEntry[]): ChunkRecord[] {
  const batch = new Batch(new ArrayBuffer(16));
  batch.add(entries, mostBatchBytes(entries));
  const { buffer } = batch.encoded();
  const bytes = Buffer.from(buffer);
  const view = new DataView(buffer);
  let position = 0;
  return entries.map((_, index) => {
    const start = position + prefixBytes;
    position = recordEnd(view, start);
    return { bytes, view, start, end: position, attributes: attributes[index % 2] ?? Buffer.alloc(0) };
  });
}

function packAll(packer: ChunkPacker, records: readonly ChunkRecord[]): Chunk[] {
  const chunks: Chunk[] = [];
  for (let from = 0; from < records.length; ) {
    const chunk = packer.pack(records, from);
    from += chunk.count;
    chunks.push({ ...chunk, bytes: Uint8Array.from(chunk.bytes) });
  }
  return chunks;
}

describe('a chunk', () => {
  test('holds records of several attributes, each found by its number', () => {
    const sizes = [0, 1, 300, 70_000, 5];
    const records = recordsOf(sizes.map((size) => entry(topic, { body: Buffer.alloc(size) })));
    const [chunk] = packAll(new ChunkPacker(), records);
    assert.ok(chunk !== undefined);
    assert.equal(chunk.count, sizes.length);
    const opened = openChunk(chunk.bytes);
    assert.deepEqual(opened.attributes, attributes.map(String));
    for (const [index, size] of sizes.entries()) {
      const start = skipRecords(opened.view, opened.start, index);
      assert.equal(bodyLength(opened.view, start), size);
      assert.equal(attributesOf(opened.view, start), index % 2);
    }
    assert.equal(skipRecords(opened.view, opened.start, sizes.length), chunk.bytes.length);
  });

  test('grows no further than its limit unless one record does', () => {
    const sizes = [100_000, 100_000, 100_000, 1_000_000, 10, 10];
    const records = recordsOf(sizes.map((size) => entry(topic, { body: Buffer.alloc(size) })));
    const packer = new ChunkPacker();
    const chunks = packAll(packer, records);
    packer.relax();
    assert.deepEqual(
      chunks.map((chunk) => chunk.count),
      [2, 1, 1, 2],
    );
    for (const { count, bytes } of chunks) assert.ok(count === 1 || bytes.length <= chunkBytes);
  });

  test('says when its latest record was accepted', () => {
    const records = recordsOf([5, 9, 7].map((acceptedAt) => entry(topic, { acceptedAt })));
    assert.equal(new ChunkPacker().pack(records, 0).acceptedThrough, 9);
    assert.equal(new ChunkPacker().pack(records, 2).acceptedThrough, 7);
  });

  test('of an unknown version is refused by name', () => {
    assert.throws(() => openChunk(Uint8Array.from([9, 0, 0])), /unknown version 9/);
  });

  test('takes no key or id whose length could not be written', () => {
    assert.throws(() => mostBatchBytes([entry(topic, { key: 'x'.repeat(30_000) })]), RangeError);
    assert.throws(() => mostBatchBytes([entry(topic, { id: 'x'.repeat(30_000) })]), RangeError);
  });
});

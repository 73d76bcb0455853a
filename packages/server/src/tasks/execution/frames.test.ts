import assert from 'node:assert/strict';
import { it } from 'node:test';
import { encodeFrame, FrameReader } from './frames.ts';

const shown = (frames: readonly { kind: number; body: Buffer }[] | undefined) =>
  frames?.map(({ kind, body }) => `${kind} ${body.toString()}`);

it('frames come out as they went in, however the bytes are cut', () => {
  const bytes = Buffer.concat([
    encodeFrame(1, Buffer.from('one')),
    encodeFrame(2),
    encodeFrame(3, Buffer.from('thr'), Buffer.from('ee')),
  ]);
  for (let size = 1; size <= bytes.byteLength; size += 1) {
    const reader = new FrameReader(100);
    const seen: string[] = [];
    for (let at = 0; at < bytes.byteLength; at += size) {
      seen.push(...(shown(reader.take(bytes.subarray(at, at + size))) ?? ['nonsense']));
    }
    assert.deepEqual(seen, ['1 one', '2 ', '3 three'], `pieces of ${size}`);
  }
});

it('a frame over the limit is refused before it is gathered', () => {
  const reader = new FrameReader(3);
  assert.deepEqual(shown(reader.take(encodeFrame(1, Buffer.from('abc')))), ['1 abc']);
  assert.equal(reader.take(encodeFrame(1, Buffer.from('abcd')).subarray(0, 5)), undefined);
});

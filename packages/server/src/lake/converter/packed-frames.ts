import { type PackedRecords, placesOfRecord } from '../../events/events.ts';
import { batchBytes, batchHeaderBytes, headOf, indexEntryBytes } from './frames.ts';

/** Batches of frames.ts made of packed records, without an object or a text for each. */

const keyMark = Buffer.from('{"_key":"');
const idMark = Buffer.from('","_id":"');
const timeMark = Buffer.from('","_ingested_at":');
const longestTime = 24;
const markBytes = keyMark.length + idMark.length + timeMark.length + longestTime;
const lineBreak = 0x0a;

/**
 * Room for batches, two by turns: one is made while the one before it is on its way. New memory for each would
 * keep the collector busier than making them takes.
 */
export class BatchRooms {
  readonly #rooms = [Buffer.alloc(0), Buffer.alloc(0)];
  #turn = 0;

  take(bytes: number): Buffer {
    this.#turn = 1 - this.#turn;
    const room = this.#rooms[this.#turn];
    if (room !== undefined && room.length >= bytes) return room;
    const larger = Buffer.allocUnsafeSlow(bytes);
    this.#rooms[this.#turn] = larger;
    return larger;
  }
}

/**
 * Those records that are meant for the lake, in batches of about a mebibyte. A batch is good until the one
 * after the next is made.
 */
export function* packedBatches(records: PackedRecords, rooms: BatchRooms): Generator<Buffer> {
  const isMeant = records.routes.map(({ lake }) => lake);
  const chosen: number[] = [];
  let bytes = 0;
  for (let index = 0; index < records.count; index += 1) {
    if (isMeant[records.routeOf[index] ?? 0] !== true) continue;
    const place = index * placesOfRecord;
    chosen.push(index);
    bytes += (records.places[place + 3] ?? 0) - (records.places[place] ?? 0) + 128;
    if (bytes < batchBytes) continue;
    yield packedBatch(records, chosen, rooms);
    chosen.length = 0;
    bytes = 0;
  }
  if (chosen.length > 0) yield packedBatch(records, chosen, rooms);
}

function packedBatch(records: PackedRecords, chosen: readonly number[], rooms: BatchRooms): Buffer {
  const { bytes, places, acceptedAt } = records;
  let room = batchHeaderBytes + chosen.length * (indexEntryBytes + markBytes + 1);
  for (const index of chosen) {
    const place = index * placesOfRecord;
    // What must be escaped takes six bytes for one at most.
    room +=
      6 * ((places[place + 2] ?? 0) - (places[place] ?? 0)) +
      (places[place + 3] ?? 0) -
      (places[place + 2] ?? 0);
  }
  const batch = rooms.take(room);
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  let entry = batchHeaderBytes;
  let at = batchHeaderBytes + chosen.length * indexEntryBytes;
  let time = Number.NaN;
  let timeText = Buffer.alloc(0);
  for (const index of chosen) {
    const place = index * placesOfRecord;
    const keyAt = places[place] ?? 0;
    const idAt = places[place + 1] ?? 0;
    const bodyAt = places[place + 2] ?? 0;
    const end = places[place + 3] ?? 0;
    const accepted = acceptedAt[index] ?? 0;
    const head = at;
    // Many messages are accepted in the same millisecond.
    if (accepted !== time) {
      time = accepted;
      timeText = Buffer.from(String(Math.trunc(accepted)));
    }
    if (isPlain(bytes, keyAt, bodyAt)) {
      at = put(batch, at, keyMark, 0, keyMark.length);
      at = put(batch, at, bytes, keyAt, idAt);
      at = put(batch, at, idMark, 0, idMark.length);
      at = put(batch, at, bytes, idAt, bodyAt);
      at = put(batch, at, timeMark, 0, timeMark.length);
      at = put(batch, at, timeText, 0, timeText.length);
    } else {
      const key = bytes.toString('utf8', keyAt, idAt);
      const id = bytes.toString('utf8', idAt, bodyAt);
      at += batch.write(headOf({ key, id, acceptedAt: accepted }), at);
    }
    view.setFloat64(entry, accepted, true);
    view.setUint32(entry + 8, at - head, true);
    view.setUint32(entry + 12, end - bodyAt, true);
    entry += indexEntryBytes;
    bytes.copy(batch, at, bodyAt, end);
    at += end - bodyAt;
    batch[at] = lineBreak;
    at += 1;
  }
  view.setUint32(0, at - 4, true);
  view.setUint32(4, chosen.length, true);
  return batch.subarray(0, at);
}

/** Whether bytes mean themselves inside a JSON text. */
function isPlain(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c) return false;
  }
  return true;
}

/** Short pieces are copied quicker here than by a call out. */
function put(target: Buffer, at: number, source: Buffer, start: number, end: number): number {
  if (end - start > 64) {
    source.copy(target, at, start, end);
  } else {
    for (let from = start, to = at; from < end; from += 1, to += 1) target[to] = source[from] ?? 0;
  }
  return at + end - start;
}

/**
 * How records travel to the converter: in batches, each one buffer.
 *
 *   u32 bytes after this field, u32 records,
 *   for every record: f64 acceptedAt, u32 bytes of its head, u32 bytes of its body,
 *   for every record: head, body, line break
 *
 * A head is the beginning of the record's line in the converter's scratch file, so that the converter can
 * write a run of records that fit their columns without touching them again.
 */

export interface LakeRecord {
  readonly key: string;
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly acceptedAt: number;
  readonly body: Uint8Array;
}

export const batchHeaderBytes = 8;
export const indexEntryBytes = 16;

const lineBreak = 0x0a;
export const batchBytes = 1 << 20;

/** The records in batches of about a mebibyte. A record is never divided. */
export function* batchesOf(records: readonly LakeRecord[]): Generator<Buffer> {
  let start = 0;
  let bytes = 0;
  for (let index = 0; index < records.length; index++) {
    bytes += (records[index]?.body.length ?? 0) + 128;
    if (bytes < batchBytes && index + 1 < records.length) continue;
    yield encodeBatch(records, start, index + 1);
    start = index + 1;
    bytes = 0;
  }
}

function encodeBatch(records: readonly LakeRecord[], start: number, end: number): Buffer {
  const heads: string[] = [];
  let room = batchHeaderBytes + (end - start) * (indexEntryBytes + 1);
  for (let index = start; index < end; index++) {
    const record = records[index];
    if (record === undefined) break;
    const head = headOf(record);
    heads.push(head);
    room += head.length * 3 + record.body.length;
  }
  const batch = Buffer.allocUnsafeSlow(room);
  const view = new DataView(batch.buffer);
  let entry = batchHeaderBytes;
  let at = batchHeaderBytes + heads.length * indexEntryBytes;
  for (let index = 0; index < heads.length; index++) {
    const record = records[start + index];
    const head = heads[index];
    if (record === undefined || head === undefined) break;
    const headBytes = batch.write(head, at);
    view.setFloat64(entry, record.acceptedAt, true);
    view.setUint32(entry + 8, headBytes, true);
    view.setUint32(entry + 12, record.body.length, true);
    entry += indexEntryBytes;
    at += headBytes;
    batch.set(record.body, at);
    at += record.body.length;
    batch[at++] = lineBreak;
  }
  view.setUint32(0, at - 4, true);
  view.setUint32(4, heads.length, true);
  return batch.subarray(0, at);
}

const plain = /^[ !#-[\]-~]*$/;

/** Everything of a line but what comes from the body. */
export function headOf({ key, id, acceptedAt }: Omit<LakeRecord, 'body'>): string {
  const time = Math.trunc(acceptedAt);
  if (plain.test(key) && plain.test(id)) return `{"_key":"${key}","_id":"${id}","_ingested_at":${time}`;
  return `{"_key":${JSON.stringify(key)},"_id":${JSON.stringify(id)},"_ingested_at":${time}`;
}

/** Puts batches together again from whatever pieces arrive. */
export class BatchReader {
  readonly #take: (batch: Buffer) => void;
  readonly #length = Buffer.alloc(4);
  #lengthBytes = 0;
  #batch = Buffer.alloc(0);
  #wanted = 0;
  #have = 0;

  /** `take` gets the batch without its length; it is overwritten afterwards. */
  constructor(take: (batch: Buffer) => void) {
    this.#take = take;
  }

  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#lengthBytes < 4) {
        this.#length[this.#lengthBytes++] = piece[at++] ?? 0;
        if (this.#lengthBytes === 4) this.#begin(this.#length.readUInt32LE());
        continue;
      }
      const bytes = Math.min(piece.length - at, this.#wanted - this.#have);
      piece.copy(this.#batch, this.#have, at, at + bytes);
      this.#have += bytes;
      at += bytes;
      if (this.#have < this.#wanted) continue;
      this.#lengthBytes = 0;
      this.#take(this.#batch.subarray(0, this.#wanted));
    }
  }

  #begin(wanted: number): void {
    this.#wanted = wanted;
    this.#have = 0;
    if (this.#batch.length < wanted || this.#batch.length > 4 * Math.max(wanted, batchBytes)) {
      this.#batch = Buffer.allocUnsafeSlow(Math.max(wanted, batchBytes + (batchBytes >> 1)));
    }
  }
}

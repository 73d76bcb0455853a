/**
 * How a record lies in memory and on disk, little endian:
 *
 * ```
 * f64 accepted at | u32 length of the body | u16 of the key | u16 of the id | u16 attributes | key | id | body
 * ```
 *
 * The attributes are a number in a table that stands next to the records. Messages of a topic share their
 * media type and routes nearly always, so these are written once instead of with each.
 */
export const recordHeaderBytes = 18;

/** No text of a record may be longer, so that its length in UTF-8 fits its field. */
export const longestText = Math.floor(0xffff / 3);

const bodyLengthAt = 8;
const keyLengthAt = 12;
const idLengthAt = 14;
const attributesAt = 16;

export interface RecordFields {
  readonly key: string;
  readonly id: string;
  readonly acceptedAt: number;
  readonly body: Uint8Array;
}

/** The bytes a record takes at most; how many exactly is known when its texts are written. */
export function mostRecordBytes({ key, id, body }: RecordFields): number {
  return recordHeaderBytes + 3 * (key.length + id.length) + body.length;
}

/** Writes a record, its attributes left open, and says where it ends. */
export function writeRecord(bytes: Buffer, view: DataView, start: number, record: RecordFields): number {
  const { key, id, body } = record;
  const keyStart = start + recordHeaderBytes;
  const idStart = writeText(bytes, keyStart, key);
  const bodyStart = writeText(bytes, idStart, id);
  view.setFloat64(start, record.acceptedAt, true);
  view.setUint32(start + bodyLengthAt, body.length, true);
  view.setUint16(start + keyLengthAt, idStart - keyStart, true);
  view.setUint16(start + idLengthAt, bodyStart - idStart, true);
  bytes.set(body, bodyStart);
  return bodyStart + body.length;
}

export function recordEnd(view: DataView, start: number): number {
  return bodyStart(view, start) + bodyLength(view, start);
}

export function bodyStart(view: DataView, start: number): number {
  return idStart(view, start) + view.getUint16(start + idLengthAt, true);
}

export function bodyLength(view: DataView, start: number): number {
  return view.getUint32(start + bodyLengthAt, true);
}

export function idStart(view: DataView, start: number): number {
  return start + recordHeaderBytes + view.getUint16(start + keyLengthAt, true);
}

export function acceptedAt(view: DataView, start: number): number {
  return view.getFloat64(start, true);
}

export function attributesOf(view: DataView, start: number): number {
  return view.getUint16(start + attributesAt, true);
}

export function setAttributes(view: DataView, start: number, attributes: number): void {
  view.setUint16(start + attributesAt, attributes, true);
}

/** Short texts of plain ASCII, which keys and ids mostly are, are quicker to write here than by a call out. */
function writeText(bytes: Buffer, start: number, text: string): number {
  const { length } = text;
  if (length > 64) return start + bytes.write(text, start, 'utf8');
  for (let index = 0; index < length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) return start + bytes.write(text, start, 'utf8');
    bytes[start + index] = unit;
  }
  return start + length;
}

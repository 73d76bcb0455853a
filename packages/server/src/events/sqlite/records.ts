import { type EventRecord, type PackedRecords, placesOfRecord } from '../events.ts';
import type { AttributesReader } from './attributes.ts';
import type { EncodedRecords } from './protocol.ts';
import { acceptedAt, attributesOf, bodyLength, bodyStart, idStart, recordHeaderBytes } from './record.ts';

/** Reads records back. Their bodies are views of the one buffer they came in. */
export function decodeRecords(encoded: EncodedRecords, reader: AttributesReader): EventRecord[] {
  const { buffer, byteOffset, byteLength } = encoded.bytes;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  const view = new DataView(buffer, byteOffset, byteLength);
  const table = encoded.attributes.map((text) => reader.read(text));
  const records: EventRecord[] = [];
  let start = 0;
  for (let index = 0; index < encoded.count; index += 1) {
    const attributes = table[attributesOf(view, start)];
    if (attributes === undefined) throw new Error('A record of the event log has unknown attributes');
    const idAt = idStart(view, start);
    const bodyAt = bodyStart(view, start);
    const length = bodyLength(view, start);
    records.push({
      offset: encoded.firstOffset + index,
      key: bytes.toString('utf8', start + recordHeaderBytes, idAt),
      id: bytes.toString('utf8', idAt, bodyAt),
      acceptedAt: acceptedAt(view, start),
      mediaType: attributes.mediaType,
      routes: attributes.routes,
      body: new Uint8Array(buffer, byteOffset + bodyAt, length),
    });
    start = bodyAt + length;
  }
  return records;
}

/** Finds out where everything is, and makes nothing of it. */
export function packRecords(encoded: EncodedRecords, reader: AttributesReader): PackedRecords {
  const { count, firstOffset } = encoded;
  const { buffer, byteOffset, byteLength } = encoded.bytes;
  const view = new DataView(buffer, byteOffset, byteLength);
  const places = new Uint32Array(count * placesOfRecord);
  const times = new Float64Array(count);
  const routeOf = new Uint16Array(count);
  let start = 0;
  for (let index = 0; index < count; index += 1) {
    const place = index * placesOfRecord;
    const bodyAt = bodyStart(view, start);
    const end = bodyAt + bodyLength(view, start);
    places[place] = start + recordHeaderBytes;
    places[place + 1] = idStart(view, start);
    places[place + 2] = bodyAt;
    places[place + 3] = end;
    times[index] = acceptedAt(view, start);
    routeOf[index] = attributesOf(view, start);
    start = end;
  }
  return {
    count,
    last: count === 0 ? undefined : firstOffset + count - 1,
    bytes: Buffer.from(buffer, byteOffset, byteLength),
    places,
    acceptedAt: times,
    routeOf,
    routes: encoded.attributes.map((text) => reader.read(text).routes),
    release: () => {
      if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
    },
  };
}

import { crc32, deflateRawSync } from 'node:zlib';

/**
 * A small writer of zip files, for code to deploy in tests. It writes what it is told to, also what no
 * honest tool would: each field can be lied about.
 */

/** A file or, with a name that ends in a slash, a folder. */
export interface ZipEntry {
  readonly name: string | Uint8Array;
  readonly content?: string | Uint8Array;
  /** As of Unix, with or without the kind of file in the upper bits; 0o644 unless told. */
  readonly mode?: number;
  /** Without compression. */
  readonly stored?: boolean;
  readonly lie?: EntryLies;
}

export interface EntryLies {
  /** What is said to be the name in front of the content. */
  readonly localName?: string | Uint8Array;
  /** The bytes in place of the packed content. */
  readonly packed?: Uint8Array;
  readonly method?: number;
  readonly localMethod?: number;
  readonly flags?: number;
  readonly crc32?: number;
  readonly bytes?: number;
  readonly packedBytes?: number;
  readonly attributes?: number;
  readonly extra?: Uint8Array;
  readonly localExtra?: Uint8Array;
  /** Where the entry is said to be; its own bytes are then left out. */
  readonly offset?: number;
}

export interface ZipLies {
  readonly entryCount?: number;
  readonly comment?: string;
  readonly directoryOffset?: number;
  /** Bytes in front of everything. */
  readonly prefix?: Uint8Array;
  /** Whether offsets count from behind the prefix, as they do when somebody just put one in front. */
  readonly offsetsWithoutPrefix?: boolean;
  /** An end record in the 64 bit form, with what it claims. */
  readonly zip64?: { readonly entryCount?: bigint; readonly directory?: bigint; readonly record?: bigint };
}

/** Files by their paths, all with one mode. */
export function zipOf(files: Readonly<Record<string, string | Uint8Array>>, mode = 0o644): Buffer {
  return zip(Object.entries(files).map(([name, content]) => ({ name, content, mode })));
}

export function zip(entries: readonly ZipEntry[], lies: ZipLies = {}): Buffer {
  const prefix = lies.prefix ?? Buffer.alloc(0);
  const shift = lies.offsetsWithoutPrefix ? 0 : prefix.length;
  const local: Uint8Array[] = [];
  const central: Uint8Array[] = [];
  let position = shift;
  for (const entry of entries) {
    const { head, record, packed } = write(entry, entry.lie?.offset ?? position);
    central.push(record);
    if (entry.lie?.offset !== undefined) continue;
    local.push(head, packed);
    position += head.length + packed.length;
  }
  const directory = Buffer.concat(central);
  const end = endOf(entries.length, position, directory.length, lies);
  return Buffer.concat([prefix, ...local, directory, ...end]);
}

const unixMade = (3 << 8) | 63;
const utf8Names = 0x800;
const regular = 0o100000;
const folder = 0o040000;

function write(entry: ZipEntry, offset: number): { head: Buffer; record: Buffer; packed: Uint8Array } {
  const { lie = {} } = entry;
  const name = bytesOf(entry.name);
  const localName = bytesOf(lie.localName ?? entry.name);
  const content = bytesOf(entry.content ?? '');
  const isFolder = name.at(-1) === 0x2f;
  const isStored = entry.stored === true || content.length === 0;
  const packed = lie.packed ?? (isStored ? content : deflateRawSync(content));
  const method = lie.method ?? (isStored ? 0 : 8);
  const mode = entry.mode ?? (isFolder ? 0o755 : 0o644);
  const kind = mode > 0o7777 ? 0 : isFolder ? folder : regular;
  const extra = lie.extra ?? Buffer.alloc(0);
  const localExtra = lie.localExtra ?? Buffer.alloc(0);

  const shared = (methodHere: number, nameHere: Uint8Array, extraHere: Uint8Array) =>
    Buffer.concat([
      number16(20),
      number16(lie.flags ?? utf8Names),
      number16(methodHere),
      number16(0),
      number16(0x21),
      number32(lie.crc32 ?? crc32(content)),
      number32(lie.packedBytes ?? packed.length),
      number32(lie.bytes ?? content.length),
      number16(nameHere.length),
      number16(extraHere.length),
    ]);
  const head = Buffer.concat([
    Buffer.from('PK\x03\x04', 'latin1'),
    shared(lie.localMethod ?? method, localName, localExtra),
    localName,
    localExtra,
  ]);
  const record = Buffer.concat([
    Buffer.from('PK\x01\x02', 'latin1'),
    number16(unixMade),
    shared(method, name, extra),
    number16(0),
    number16(0),
    number16(0),
    number32(lie.attributes ?? ((mode | kind) << 16) >>> 0),
    number32(offset),
    name,
    extra,
  ]);
  return { head, record, packed };
}

function endOf(count: number, directoryStart: number, directoryBytes: number, lies: ZipLies): Buffer[] {
  const { zip64, comment = '' } = lies;
  const end = Buffer.concat([
    Buffer.from('PK\x05\x06', 'latin1'),
    number16(0),
    number16(0),
    number16((lies.entryCount ?? count) & 0xffff),
    number16((lies.entryCount ?? count) & 0xffff),
    number32(directoryBytes),
    number32(lies.directoryOffset ?? directoryStart),
    number16(Buffer.byteLength(comment)),
    Buffer.from(comment),
  ]);
  if (zip64 === undefined) return [end];
  const record = Buffer.concat([
    Buffer.from('PK\x06\x06', 'latin1'),
    number64(44n),
    number16(unixMade),
    number16(45),
    number32(0),
    number32(0),
    number64(zip64.entryCount ?? BigInt(count)),
    number64(zip64.entryCount ?? BigInt(count)),
    number64(BigInt(directoryBytes)),
    number64(zip64.directory ?? BigInt(directoryStart)),
  ]);
  const locator = Buffer.concat([
    Buffer.from('PK\x06\x07', 'latin1'),
    number32(0),
    number64(zip64.record ?? BigInt(directoryStart + directoryBytes)),
    number32(1),
  ]);
  return [record, locator, end];
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? Buffer.from(text) : text;
}

function number16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function number64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

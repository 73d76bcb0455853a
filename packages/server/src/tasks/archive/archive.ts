import { type FileHandle, open } from 'node:fs/promises';
import { type Entry, fromRandomAccessReaderPromise, type ZipFile } from 'yauzl';
import { ArchiveReader } from './archive-reader.ts';
import { ArchiveTree } from './archive-tree.ts';
import { nameOf, shownName } from './entry-name.ts';

export interface ArchiveLimits {
  /** Bytes of all files when unpacked. */
  readonly codeUnzippedBytes: number;
  /** Files and folders. */
  readonly codeEntries: number;
}

/** Why an archive is not taken, as a sentence for the one who made it. */
export interface Refusal {
  readonly refusal: string;
}

/** A file in an archive. */
export interface ArchivedFile {
  /** Relative, with `/` between folders. */
  readonly path: string;
  readonly isExecutable: boolean;
  /** Bytes when unpacked, as the archive claims. */
  readonly bytes: number;
  /** Where its bytes are in the archive, as they are there. */
  readonly stored: {
    readonly start: number;
    readonly bytes: number;
    readonly isDeflated: boolean;
    readonly crc32: number;
  };
}

/** What is in an archive whose structure was found to be good. */
export interface Archive {
  readonly files: readonly ArchivedFile[];
  /** Every folder, each after the one that it is in. */
  readonly folders: readonly string[];
}

const notZip = { refusal: 'The upload is not a zip file, or its end is missing.' } as const;
const damaged = { refusal: 'The zip file is damaged.' } as const;

/**
 * Reads the structure of an archive and refuses everything that a plain tool that packs code would not
 * make. No file is unpacked, so what the archive claims about sizes is believed here; unpacking counts.
 */
export async function checkArchive(path: string, limits: ArchiveLimits): Promise<Archive | Refusal> {
  const file = await open(path);
  try {
    return await readArchive(file, limits);
  } finally {
    await file.close();
  }
}

/** The same of an open file. */
export async function readArchive(file: FileHandle, limits: ArchiveLimits): Promise<Archive | Refusal> {
  const { size } = await file.stat();
  const reader = new ArchiveReader(file, size);
  let zip: ZipFile;
  try {
    zip = await fromRandomAccessReaderPromise(reader, size, { autoClose: false, decodeStrings: false });
  } catch (error) {
    return refused(error, notZip);
  }
  try {
    return await readEntries(zip, reader, limits);
  } catch (error) {
    return refused(error, damaged);
  }
}

/** What the parser complains of is the fault of the archive; what the system complains of is not. */
export function refused(error: unknown, refusal: Refusal): Refusal {
  if (error instanceof Error && 'syscall' in error) throw error;
  return refusal;
}

async function readEntries(
  zip: ZipFile,
  reader: ArchiveReader,
  limits: ArchiveLimits,
): Promise<Archive | Refusal> {
  const { codeEntries, codeUnzippedBytes } = limits;
  const tooMany = { refusal: `The zip file has more than ${codeEntries} files and folders.` };
  if (zip.entryCount > codeEntries) return tooMany;
  if (zip.entryCount === 0) return { refusal: 'The zip file is empty.' };
  const directoryStart = Number(zip.readEntryCursor);
  const tree = new ArchiveTree(2 * codeEntries);
  const described: Described[] = [];
  let bytes = 0;
  for await (const entry of zip.eachEntry()) {
    const description = describe(entry, tree);
    if ('wrong' in description) return refusalOf(entry, description);
    bytes += entry.uncompressedSize;
    if (bytes > codeUnzippedBytes) {
      return { refusal: `The zip file has more than ${codeUnzippedBytes} bytes when unzipped.` };
    }
    described.push(description);
  }
  // The count in a zip file has 16 bits: one more entry here means that there are some that it denies.
  if (await hasEntryAt(reader, Number(zip.readEntryCursor), zip.fileSize)) return tooMany;
  const files: ArchivedFile[] = [];
  // In the order of the file, which is then read from begin to end.
  described.sort(
    (one, other) => one.entry.relativeOffsetOfLocalHeader - other.entry.relativeOffsetOfLocalHeader,
  );
  for (const [index, { entry, path, isFile }] of described.entries()) {
    const start = await contentStart(zip, entry);
    if (typeof start !== 'number') return refusalOf(entry, start);
    const next = described[index + 1]?.entry.relativeOffsetOfLocalHeader ?? directoryStart;
    if (start + entry.compressedSize > next) {
      return { refusal: 'The zip file has entries that share their bytes, as a zip bomb has.' };
    }
    if (isFile) files.push(fileOf(entry, path, start));
  }
  if (files.length === 0) return { refusal: 'The zip file has no files.' };
  return { files, folders: tree.folders };
}

interface Wrong {
  readonly wrong: string;
}

function refusalOf(entry: Entry, { wrong }: Wrong): Refusal {
  return { refusal: `The entry ${shownName(entry)} of the zip file ${wrong}.` };
}

interface Described {
  readonly entry: Entry;
  readonly path: string;
  readonly isFile: boolean;
}

const fileKind = { none: 0, folder: 0o04, regular: 0o10, link: 0o12 } as const;
const method = { stored: 0, deflated: 8 } as const;
const dosFolder = 0x10;
const masked = 0x2000;

/** What an entry of the directory will be, when it can be. */
function describe(entry: Entry, tree: ArchiveTree): Described | Wrong {
  const name = nameOf(entry);
  if ('wrong' in name) return name;
  if (entry.isEncrypted() || (entry.generalPurposeBitFlag & masked) !== 0) return { wrong: 'is encrypted' };
  const { compressionMethod } = entry;
  if (compressionMethod !== method.stored && compressionMethod !== method.deflated) {
    return { wrong: `is packed with method ${compressionMethod}; only deflate and no compression are known` };
  }
  const kind = modeOf(entry) >>> 12;
  if (kind === fileKind.link) return { wrong: 'is a symbolic link' };
  if (kind !== fileKind.none && kind !== fileKind.folder && kind !== fileKind.regular) {
    return { wrong: 'is a device, a pipe or a socket' };
  }
  const isDosFolder = kind === fileKind.none && (entry.externalFileAttributes & dosFolder) !== 0;
  const isFile = !name.endsWithSlash && kind !== fileKind.folder && !isDosFolder;
  if (!isFile && entry.uncompressedSize > 0) return { wrong: 'is a folder that has content' };
  if (isFile && name.parts.length === 0) return { wrong: 'has no name' };
  const clash = tree.add(name.parts, isFile);
  return clash === undefined ? { entry, path: name.parts.join('/'), isFile } : { wrong: clash };
}

/** Where the content of an entry begins, when what is written in front of it agrees with the directory. */
async function contentStart(zip: ZipFile, entry: Entry): Promise<number | Wrong> {
  const local = await zip.readLocalFileHeaderPromise(entry);
  if (!local.fileName.equals(entry.fileNameRaw)) return { wrong: 'has two different names' };
  if (local.compressionMethod !== entry.compressionMethod) {
    return { wrong: 'is packed with two different methods' };
  }
  return local.fileDataStart;
}

function fileOf(entry: Entry, path: string, start: number): ArchivedFile {
  return {
    path,
    isExecutable: (modeOf(entry) & 0o111) !== 0,
    bytes: entry.uncompressedSize,
    stored: {
      start,
      bytes: entry.compressedSize,
      isDeflated: entry.compressionMethod === method.deflated,
      crc32: entry.crc32,
    },
  };
}

function modeOf(entry: Entry): number {
  return entry.externalFileAttributes >>> 16;
}

const entrySignature = Buffer.from('PK\x01\x02', 'latin1');

function hasEntryAt(reader: ArchiveReader, position: number, fileSize: number): Promise<boolean> {
  if (position + entrySignature.length > fileSize) return Promise.resolve(false);
  return new Promise((resolve, reject) => {
    const found = Buffer.alloc(entrySignature.length);
    reader.read(found, 0, found.length, position, (error) => {
      if (error === null) resolve(found.equals(entrySignature));
      else reject(error);
    });
  });
}

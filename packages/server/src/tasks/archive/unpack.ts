import { chmod, type FileHandle, mkdir, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { crc32, createInflateRaw, inflateRaw } from 'node:zlib';
import { type Archive, type ArchivedFile, type ArchiveLimits, type Refusal, readArchive } from './archive.ts';

/** Files up to this size are unpacked in one piece, which is much faster for many small ones. */
const pieceBytes = 1024 * 1024;
const chunkBytes = 256 * 1024;
const filesAtOnce = 4;

const inflate = promisify(inflateRaw);

/**
 * Unpacks an archive into a directory that does not exist yet. It appears as a whole or not at all: a
 * refusal, a fault or a crash leaves nothing of that name. Files get the mode 0644, or 0755 where the
 * archive says that they can be executed, and no other right, owner or time of the archive counts.
 *
 * Where the directory has appeared meanwhile it stays as it is: of several who unpack the same code at
 * once, one puts it there.
 */
export async function unpack(
  path: string,
  directory: string,
  limits: ArchiveLimits,
  signal: AbortSignal,
): Promise<Archive | Refusal> {
  const file = await open(path);
  try {
    const archive = await readArchive(file, limits);
    if ('refusal' in archive) return archive;
    signal.throwIfAborted();
    await mkdir(dirname(directory), { recursive: true });
    const partial = await mkdtemp(join(dirname(directory), `.${basename(directory)}-unpacking-`));
    try {
      const refusal = await write(file, archive, partial, signal);
      if (refusal !== undefined) return refusal;
      await appear(partial, directory);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
    return archive;
  } finally {
    await file.close();
  }
}

async function appear(partial: string, directory: string): Promise<void> {
  await chmod(partial, 0o755);
  try {
    await rename(partial, directory);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

async function write(
  file: FileHandle,
  archive: Archive,
  directory: string,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  for (const folder of archive.folders) {
    signal.throwIfAborted();
    const path = join(directory, folder);
    await mkdir(path);
    await chmod(path, 0o755);
  }
  const rest = archive.files.values();
  let refusal: Refusal | undefined;
  const work = async () => {
    for (const archived of rest) {
      signal.throwIfAborted();
      if (refusal !== undefined) return;
      const wrong = await writeFile(file, archived, join(directory, archived.path), signal);
      if (wrong !== undefined) {
        refusal = { refusal: `The file ${JSON.stringify(archived.path)} of the zip file ${wrong}.` };
      }
    }
  };
  // All of them have ended before anything is removed.
  const ended = await Promise.allSettled(Array.from({ length: filesAtOnce }, work));
  signal.throwIfAborted();
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
  return refusal;
}

const larger = 'is larger than it claims to be';
const smaller = 'is smaller than it claims to be';
const damaged = 'is damaged';

/** Writes one file, or says what is wrong with it. */
async function writeFile(
  file: FileHandle,
  archived: ArchivedFile,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { bytes, stored, isExecutable } = archived;
  // Only ever a new file: nothing that is there is written through.
  const target = await open(path, 'wx', 0o600);
  try {
    const isPiece = bytes <= pieceBytes && stored.bytes <= pieceBytes;
    const wrong = isPiece
      ? await writePiece(file, archived, target)
      : await writeStream(file, archived, target, signal);
    if (wrong === undefined) await target.chmod(isExecutable ? 0o755 : 0o644);
    return wrong;
  } finally {
    await target.close();
  }
}

async function writePiece(
  file: FileHandle,
  { bytes, stored }: ArchivedFile,
  target: FileHandle,
): Promise<string | undefined> {
  let content: Buffer = Buffer.alloc(stored.bytes);
  const { bytesRead } = await file.read(content, 0, stored.bytes, stored.start);
  if (bytesRead < stored.bytes) return damaged;
  if (stored.isDeflated) {
    try {
      content = await inflate(content, { maxOutputLength: Math.max(1, bytes) });
    } catch (error) {
      return wrongOf(error);
    }
  }
  const wrong = mismatch(content.length, bytes, crc32(content), stored.crc32);
  if (wrong !== undefined) return wrong;
  await target.writeFile(content);
  return undefined;
}

async function writeStream(
  file: FileHandle,
  { bytes, stored }: ArchivedFile,
  target: FileHandle,
  signal: AbortSignal,
): Promise<string | undefined> {
  let count = 0;
  let sum = 0;
  const write = async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      count += chunk.length;
      sum = crc32(chunk, sum);
      if (count > bytes) throw new TooLarge();
      await target.writeFile(chunk);
    }
  };
  const source = chunksOf(file, stored.start, stored.bytes);
  try {
    if (stored.isDeflated) await pipeline(source, createInflateRaw(), write, { signal });
    else await pipeline(source, write, { signal });
  } catch (error) {
    return wrongOf(error);
  }
  return mismatch(count, bytes, sum, stored.crc32);
}

async function* chunksOf(file: FileHandle, start: number, bytes: number): AsyncGenerator<Buffer> {
  for (let position = start; position < start + bytes; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, start + bytes - position));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return;
    yield chunk.subarray(0, bytesRead);
    position += bytesRead;
  }
}

class TooLarge extends Error {}

function mismatch(count: number, bytes: number, sum: number, expected: number): string | undefined {
  if (count > bytes) return larger;
  if (count < bytes) return smaller;
  return sum === expected ? undefined : `${damaged}: its checksum is not right`;
}

/** What inflating complains of is the fault of the archive; anything else is not. */
function wrongOf(error: unknown): string {
  if (error instanceof TooLarge) return larger;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ERR_BUFFER_TOO_LARGE') return larger;
  if (code.startsWith('Z_')) return damaged;
  throw error;
}

import { randomUUID } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import {
  access,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { contentChunks } from '../content.ts';
import { requireKey, requirePrefix } from '../key.ts';
import {
  type ByteRange,
  KeyConflictError,
  LengthMismatchError,
  type ObjectContent,
  type ObjectStore,
  type ObjectSummary,
  type OpenObject,
  type PutOptions,
  pageSize,
  RangeNotSatisfiableError,
  resolveRange,
  type StoredObject,
} from '../objects.ts';
import { DurableDirectories, refuseLinks, SymbolicLinkError, syncDirectory } from './directories.ts';
import { faultCode, isMissing, writeFault } from './faults.ts';
import { listFiles } from './listing.ts';
import type { UrlSigner } from './signature.ts';

/**
 * Objects as files. `<directory>/objects/<key>` is the object, under its plain name; `<directory>/temporary`
 * holds what is being written. A write goes: bytes into a temporary file, sync it, give it its name (rename
 * to replace, link to create exclusively), sync the directory. A crash at any point leaves the old object or
 * the new one, and at most a temporary file, which the next opening removes.
 *
 * One process owns a directory at a time.
 */
export interface FileStore extends ObjectStore {
  /** Where an object is, for engines in the same machine that read files themselves. */
  pathOf(key: string): string;
  /** The directory that holds every object, as real path, for engines that are confined to directories. */
  readonly directory: string;
}

export interface FileStoreOptions {
  directory: string;
  signer: UrlSigner;
}

export async function openFileStore(options: FileStoreOptions): Promise<FileStore> {
  await mkdir(options.directory, { recursive: true });
  const root = await realpath(options.directory);
  const objects = path.join(root, 'objects');
  const temporary = path.join(root, 'temporary');
  await mkdir(objects, { recursive: true });
  await mkdir(temporary, { recursive: true });
  await refuseLinks(objects);
  await refuseLinks(temporary);
  await syncDirectory(root);
  await syncDirectory(path.dirname(root));
  for (const leftover of await readdir(temporary)) await unlink(path.join(temporary, leftover));

  const { signer } = options;
  const writer: Writer = { temporary, directories: new DurableDirectories(objects) };
  const pathOf = (key: string) => path.join(objects, requireKey(key));

  return {
    directory: objects,
    pathOf,
    async put(key, body, putOptions) {
      const target = pathOf(key);
      return write(writer, target, body, putOptions ?? {}, (from) => rename(from, target));
    },
    async create(key, body, createOptions) {
      const target = pathOf(key);
      try {
        // A link cannot replace anything, so of two uploads one gets the name and the other EEXIST.
        const stored = await write(writer, target, body, createOptions, (from) => link(from, target));
        return { outcome: 'created', ...stored };
      } catch (error) {
        if (error instanceof LengthMismatchError) return { outcome: 'length-mismatch' };
        if (faultCode(error) !== 'EEXIST') throw error;
        if ((await lstat(target)).isDirectory())
          throw new KeyConflictError('The key is a directory of objects.');
        return { outcome: 'exists' };
      }
    },
    async get(key, range) {
      return read(pathOf(key), range);
    },
    async head(key) {
      return summarize(pathOf(key));
    },
    async delete(key) {
      return remove(writer, pathOf(key));
    },
    async list(prefix, { after = '', limit }) {
      requirePrefix(prefix);
      requirePrefix(after);
      return listFiles(objects, { prefix, after, limit: pageSize(limit) });
    },
    async signedGet(key, { expiresAt }) {
      return signer.sign({ method: 'GET', key: requireKey(key), expiresAt });
    },
    async signedPut(key, { expiresAt, contentLength }) {
      const url = signer.sign({ method: 'PUT', key: requireKey(key), expiresAt, contentLength });
      return { url, headers: {} };
    },
    async check() {
      await access(objects, constants.R_OK | constants.W_OK | constants.X_OK);
      await access(temporary, constants.R_OK | constants.W_OK | constants.X_OK);
    },
    async close() {},
  };
}

interface Writer {
  temporary: string;
  directories: DurableDirectories;
}

async function write(
  writer: Writer,
  target: string,
  body: ObjectContent,
  options: PutOptions,
  publish: (temporaryFile: string) => Promise<void>,
): Promise<StoredObject> {
  const temporaryFile = path.join(writer.temporary, randomUUID());
  const chunks = contentChunks(body, options);
  try {
    options.signal?.throwIfAborted();
    const stored = await writeTemporary(temporaryFile, chunks);
    options.signal?.throwIfAborted();
    await publishDurably(writer, path.dirname(target), () => publish(temporaryFile));
    return stored;
  } catch (error) {
    throw writeFault(error);
  } finally {
    if (body instanceof Readable) body.destroy();
    await ignoreMissing(unlink(temporaryFile));
  }
}

async function writeTemporary(file: string, chunks: AsyncIterable<Uint8Array>): Promise<StoredObject> {
  const handle = await open(file, 'wx', 0o600);
  try {
    for await (const chunk of chunks) await writeWhole(handle, chunk);
    await handle.sync();
    return storedObject(await handle.stat({ bigint: true }));
  } finally {
    await handle.close();
  }
}

async function writeWhole(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  // The system may take less than it was given, most likely just before the disk is full.
  for (let written = 0; written < chunk.byteLength; ) {
    written += (await handle.write(chunk, written, chunk.byteLength - written)).bytesWritten;
  }
}

async function publishDurably(
  { directories }: Writer,
  directory: string,
  publish: () => Promise<void>,
): Promise<void> {
  await directories.whileTheyMove(directory, async () => {
    await directories.ensure(directory);
    await refuseLinks(directory);
    await publish();
  });
  await ignoreMissing(
    // Gone at the end of this means that the object was deleted again in the meantime.
    directories.whileTheyMove(directory, async () => {
      await syncDirectory(directory);
      await directories.ensure(directory);
    }),
  );
}

async function ignoreMissing(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function remove(writer: Writer, target: string): Promise<void> {
  const directory = path.dirname(target);
  try {
    await refuseLinks(directory);
    if (!(await lstat(target)).isFile()) return;
    await unlink(target);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  await ignoreMissing(syncDirectory(directory));
  await writer.directories.prune(directory);
}

async function read(target: string, range: ByteRange | undefined): Promise<OpenObject | undefined> {
  const opened = await openFile(target);
  if (opened === undefined) return undefined;
  const { handle, summary } = opened;
  try {
    if (range === undefined) {
      return { ...summary, body: handle.createReadStream(), length: summary.size };
    }
    const bytes = resolveRange(range, summary.size);
    if (bytes === undefined) throw new RangeNotSatisfiableError('The range begins past the last byte.');
    return { ...summary, body: handle.createReadStream(bytes), length: bytes.end - bytes.start + 1 };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Opens a regular file without following a link and without waiting for the other end of a pipe. */
async function openFile(target: string): Promise<{ handle: FileHandle; summary: ObjectSummary } | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await handle.stat({ bigint: true });
    await refuseLinks(path.dirname(target));
    if (stat.isFile()) return { handle, summary: summaryOf(stat) };
    await handle.close();
    return undefined;
  } catch (error) {
    await handle?.close();
    if (isMissing(error)) return undefined;
    if (faultCode(error) === 'ELOOP') {
      throw new SymbolicLinkError('A symbolic link stands inside the object store; it is not followed.');
    }
    throw error;
  }
}

async function summarize(target: string): Promise<ObjectSummary | undefined> {
  const opened = await openFile(target);
  await opened?.handle.close();
  return opened?.summary;
}

function summaryOf(stat: BigIntStats): ObjectSummary {
  return { ...storedObject(stat), lastModified: Number(stat.mtimeMs) };
}

/** Inode, time and size together differ between any two versions of an object. */
function storedObject(stat: BigIntStats): StoredObject {
  const etag = `"${stat.ino.toString(36)}-${stat.mtimeNs.toString(36)}-${stat.size.toString(36)}"`;
  return { size: Number(stat.size), etag };
}

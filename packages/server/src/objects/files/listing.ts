import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { isSegment } from '../key.ts';
import type { ListedObject, ObjectPage } from '../objects.ts';
import { isMissing } from './faults.ts';

/**
 * Lists keys in their byte order over nested directories. In a directory, an object `a` counts as `a` and
 * a directory `a` as `a/`, which is how their keys compare: `a`, `a-b`, `a/x`, `a0`. A directory whose
 * keys all lie before `after`, or outside the prefix, is not opened.
 */
export async function listFiles(
  root: string,
  request: { prefix: string; after: string; limit: number },
): Promise<ObjectPage> {
  const objects: ListedObject[] = [];
  const start = request.prefix.slice(0, request.prefix.lastIndexOf('/') + 1);
  if (!(await isPlainDirectory(path.join(root, start)))) return { objects };
  for await (const key of keysUnder(root, start, request)) {
    const object = await describe(root, key);
    if (object === undefined) continue;
    if (objects.length === request.limit) return withNext(objects);
    objects.push(object);
  }
  return { objects };
}

/** The walk below never enters a link; this is for where it begins. */
async function isPlainDirectory(directory: string): Promise<boolean> {
  try {
    return (await realpath(directory)) === path.resolve(directory);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function withNext(objects: ListedObject[]): ObjectPage {
  const last = objects.at(-1);
  return last === undefined ? { objects } : { objects, next: last.key };
}

async function describe(root: string, key: string): Promise<ListedObject | undefined> {
  try {
    const stat = await lstat(path.join(root, key));
    return stat.isFile() ? { key, size: stat.size, lastModified: Math.trunc(stat.mtimeMs) } : undefined;
  } catch (error) {
    // Deleted since its directory was read.
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** `directory` is empty or ends in `/`. */
async function* keysUnder(
  root: string,
  directory: string,
  request: { prefix: string; after: string },
): AsyncGenerator<string, void, undefined> {
  for (const name of await sortedNames(root, directory)) {
    const key = directory + name;
    if (!name.endsWith('/')) {
      if (key > request.after && key.startsWith(request.prefix)) yield key;
      continue;
    }
    const holdsAfter = request.after.startsWith(key);
    const inPrefix = key.startsWith(request.prefix) || request.prefix.startsWith(key);
    if (inPrefix && (key > request.after || holdsAfter)) yield* keysUnder(root, key, request);
  }
}

async function sortedNames(root: string, directory: string): Promise<string[]> {
  const names: string[] = [];
  try {
    for (const entry of await readdir(path.join(root, directory), { withFileTypes: true })) {
      // Links are neither; names that no key can have were not put there by this store.
      if (!isSegment(entry.name)) continue;
      if (entry.isFile()) names.push(entry.name);
      else if (entry.isDirectory()) names.push(`${entry.name}/`);
    }
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return names.sort();
}

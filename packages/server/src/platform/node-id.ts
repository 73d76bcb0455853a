import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Random, randomId } from './random.ts';

/**
 * The name of this node among those that share a database. It belongs to the data directory, so a process
 * that is started again is the node it was before and takes its work up at once.
 */
export async function nodeIdOf(dataDirectory: string, random: Random): Promise<string> {
  const path = join(dataDirectory, 'node-id');
  const known = await readFile(path, 'utf8').catch(() => '');
  if (/^[0-9A-Za-z]{22}$/.test(known)) return known;
  const id = randomId(random);
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(id);
    await file.sync();
  } finally {
    await file.close();
  }
  return id;
}

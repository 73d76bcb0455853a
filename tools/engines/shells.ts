import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { installPackages } from './debian.ts';

/** The shells, besides bash, that the command line completes its commands in. */
export interface Shells {
  readonly zsh: string;
  readonly fish: string;
}

/** Finds zsh and fish, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findShells(): Promise<Shells> {
  const found = await findBoth();
  if (found !== undefined) return found;
  await installPackages('zsh', 'fish');
  const installed = await findBoth();
  if (installed === undefined) throw new Error('the packages zsh and fish brought no shells with them');
  return installed;
}

async function findBoth(): Promise<Shells | undefined> {
  const [zsh, fish] = await Promise.all([find('zsh'), find('fish')]);
  return zsh === undefined || fish === undefined ? undefined : { zsh, fish };
}

async function find(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    const path = join(folder, name);
    const isHere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isHere) return path;
  }
  return undefined;
}

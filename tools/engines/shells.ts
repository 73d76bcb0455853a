import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const installMilliseconds = 300_000;

/** The shells, besides bash, that the command line completes its commands in. */
export interface Shells {
  readonly zsh: string;
  readonly fish: string;
}

/** Finds zsh and fish, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findShells(): Promise<Shells> {
  const found = await findBoth();
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0)
    throw new Error('zsh and fish are not both installed, and only root may (apt-get install zsh fish)');
  const options = {
    timeout: installMilliseconds,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 64 * 1024 * 1024,
  };
  try {
    await run('apt-get', ['update'], options);
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'zsh', 'fish'], options);
  } catch (error) {
    throw new Error('zsh and fish could not be installed from the Debian packages', { cause: error });
  }
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

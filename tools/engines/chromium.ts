import { existsSync } from 'node:fs';
import { installPackages } from './debian.ts';

const path = '/usr/bin/chromium';

/** Finds Chromium, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findChromium(): Promise<string> {
  if (existsSync(path)) return path;
  await installPackages('chromium');
  return path;
}

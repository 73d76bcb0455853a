import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);
const installMilliseconds = 600_000;
const path = '/usr/bin/chromium';

/** Finds Chromium, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findChromium(): Promise<string> {
  if (existsSync(path)) return path;
  if (process.getuid?.() !== 0)
    throw new Error('Chromium is not installed, and only root may install it (apt-get install chromium)');
  const options = {
    timeout: installMilliseconds,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 64 * 1024 * 1024,
  };
  try {
    await run('apt-get', ['update'], options);
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], options);
  } catch (error) {
    throw new Error('Chromium could not be installed from the Debian packages', { cause: error });
  }
  return path;
}

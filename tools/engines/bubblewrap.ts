import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { probeBubblewrap } from '../../packages/server/src/platform/bubblewrap.ts';

const run = promisify(execFile);
const installMilliseconds = 300_000;

/** Finds bubblewrap, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findBubblewrap(): Promise<string> {
  const found = await probeBubblewrap();
  if (found !== undefined) return found.path;
  if (process.getuid?.() !== 0) {
    throw new Error('bubblewrap is not usable, and only root may install it (apt-get install bubblewrap)');
  }
  const options = {
    timeout: installMilliseconds,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  };
  try {
    await run('apt-get', ['update'], options);
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'bubblewrap'], options);
  } catch (error) {
    throw new Error('bubblewrap could not be installed from the Debian packages', { cause: error });
  }
  const installed = await probeBubblewrap();
  if (installed === undefined) throw new Error('this host does not let bubblewrap make namespaces');
  return installed.path;
}

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const installMilliseconds = 600_000;

/** Installs packages of Debian by name. Throws with a plain reason. */
export async function installPackages(...packages: string[]): Promise<void> {
  const names = packages.join(' and ');
  if (process.getuid?.() !== 0)
    throw new Error(
      `${names} cannot be used here, and only root may install (apt-get install ${packages.join(' ')})`,
    );
  const options = {
    timeout: installMilliseconds,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 64 * 1024 * 1024,
  };
  try {
    await run('apt-get', ['update'], options);
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...packages], options);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new Error(`${names} could not be installed from the Debian packages: ${why}`, { cause: error });
  }
}

import { probeBubblewrap } from '../../packages/server/src/platform/bubblewrap.ts';
import { installPackages } from './debian.ts';

/** Finds bubblewrap, from what is installed or from Debian's packages. Throws with a plain reason. */
export async function findBubblewrap(): Promise<string> {
  const found = await probeBubblewrap();
  if (found !== undefined) return found.path;
  await installPackages('bubblewrap');
  const installed = await probeBubblewrap();
  if (installed === undefined) throw new Error('this host does not let bubblewrap make namespaces');
  return installed.path;
}

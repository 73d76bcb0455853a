import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { dirname, join, sep } from 'node:path';

// Loading the code is most of a start, and stripping its types takes a compiler into memory that is never
// needed again. Node keeps the result beside the installed packages, so only the first start pays for it.
// A cache that NODE_COMPILE_CACHE or the command line chose before stays; where it cannot be kept, every
// start pays.
enableCompileCache({ directory: join(installedPackages(), '.cache/millrace') });
// Threads ask the environment, not the process, whether there is a cache. To the name it was given Node has
// added a folder for its version and the user.
const used = getCompileCacheDir();
if (used !== undefined) process.env.NODE_COMPILE_CACHE = dirname(used);

const { serve } = await import('./serve.ts');
await serve();

/** The folder `node_modules` that this package was installed in, or that of the repository. */
function installedPackages(): string {
  const name = `${sep}node_modules`;
  const end = import.meta.dirname.lastIndexOf(name + sep);
  if (end < 0) return join(import.meta.dirname, '../../../node_modules');
  return import.meta.dirname.slice(0, end + name.length);
}

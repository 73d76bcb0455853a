import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Loading the code is most of a start, and stripping its types takes a compiler into memory that is never
// needed again. Node keeps the result beside the installed packages, so only the first start pays for it.
const directory = join(import.meta.dirname, '../../../node_modules/.cache/millrace');
enableCompileCache({ directory });
// Threads ask the environment, not the process, whether there is a cache.
process.env.NODE_COMPILE_CACHE = directory;

const { serve } = await import('./serve.ts');
await serve();

/** A process that takes a data directory, says how it went, and keeps it until it is killed. */
import { openDataDirectory } from './data-directory.ts';

const opened = await openDataDirectory(process.argv[2] ?? '');
console.log('refusal' in opened ? opened.refusal : 'taken');
// With nothing else to do the process would end, and its garbage is collected all the same.
setInterval(() => globalThis.gc?.(), 10);

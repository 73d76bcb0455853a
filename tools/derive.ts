/** Writes the files that are derived from the command line: its reference, and the schema of millrace.json. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { derivedFiles } from '../packages/cli/src/derived-files.ts';

const root = join(import.meta.dirname, '..');
for (const [path, text] of Object.entries(derivedFiles())) await writeFile(join(root, path), text);

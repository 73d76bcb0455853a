/**
 * Checks what people install: the packages from their tarballs, in an empty folder, with what they need from
 * the registry; and the files in `deploy`, as far as this machine has what they are for. A test that cannot run
 * here says why.
 *
 *     node tools/test-packages.ts [name...]
 *
 * Names choose tests: `installed`, `image`, `unit`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob } from 'node:fs/promises';
import { basename, join } from 'node:path';

const wanted = process.argv.slice(2);
const files: string[] = [];
for await (const file of glob(join(import.meta.dirname, 'packages/*.test.ts')))
  if (wanted.length === 0 || wanted.includes(basename(file, '.test.ts'))) files.push(file);

const tests = spawn(
  process.execPath,
  ['--test', '--test-concurrency=1', '--test-timeout=900000', '--test-reporter=spec', ...files.sort()],
  { stdio: 'inherit' },
);
const [code] = await once(tests, 'exit');
process.exitCode = code === 0 ? 0 : 1;

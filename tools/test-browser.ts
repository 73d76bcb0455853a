/**
 * Runs the tests that need a browser, which `npm install` does not bring. On a machine that cannot have one it
 * says so; with CI=true that is a failure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob } from 'node:fs/promises';
import { findChromium } from './engines/chromium.ts';

const files: string[] = [];
for await (const file of glob('acceptance/**/*.browser.ts', { exclude: ['**/node_modules/**'] }))
  files.push(file);

try {
  const chromium = await findChromium();
  const tests = spawn(process.execPath, ['--test', '--test-timeout=180000', ...files.sort()], {
    stdio: 'inherit',
    env: { ...process.env, MILLRACE_TEST_CHROMIUM: chromium },
  });
  const [code] = await once(tests, 'exit');
  process.exitCode = code === 0 ? 0 : 1;
} catch (error) {
  process.stdout.write(`SKIPPED the tests in a browser: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = process.env.CI === 'true' ? 1 : 0;
}

/**
 * Starts the service once on a throw-away data directory, after `npm install`, so that Node has compiled
 * its code before a person waits for it. A machine on which this fails can still run the service.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const limitMilliseconds = 30_000;
const root = join(import.meta.dirname, '..');
const dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-warm-'));
const child = spawn(process.execPath, [join(root, 'packages/server/src/main.ts')], {
  env: {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/millrace'),
    MILLRACE_DATA_DIR: dataDirectory,
    MILLRACE_PORT: '0',
    MILLRACE_LOG_LEVEL: 'silent',
  },
  stdio: ['ignore', 'pipe', 'ignore'],
});
const timer = setTimeout(() => child.kill('SIGKILL'), limitMilliseconds);
child.stdout.on('data', () => child.kill('SIGTERM'));
child.on('error', () => child.emit('close'));
child.on('close', () => {
  clearTimeout(timer);
  void rm(dataDirectory, { recursive: true, force: true });
});

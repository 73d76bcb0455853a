import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { installS3Server } from './s3-install.ts';

/** A real S3 server on a loopback port, empty at first, for as long as a test run lasts. */
export interface S3Engine {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  stop(): Promise<void>;
}

const startLimitMs = 15_000;
const stopLimitMs = 5_000;
const startAttempts = 3;
const region = 'us-east-1';

/** Installs the server where needed and starts it. Throws an error that says plainly why it could not. */
export async function startS3(): Promise<S3Engine> {
  const program = await installS3Server();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(program);
    } catch (error) {
      // Someone else may have taken the port between its choice and its use.
      if (attempt === startAttempts) throw error;
    }
  }
}

async function launch(program: string): Promise<S3Engine> {
  const directory = await mkdtemp(path.join(tmpdir(), 'millrace-s3-'));
  const address = `127.0.0.1:${await freePort()}`;
  const accessKeyId = `test${randomBytes(8).toString('hex')}`;
  const secretAccessKey = randomBytes(24).toString('base64url');
  const child = spawn(program, ['--port', address, '--region', region, '--quiet', 'posix', directory], {
    env: { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey, PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collectOutput(child);
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);

  async function stop(): Promise<void> {
    process.removeListener('exit', kill);
    await endProcess(child);
    await rm(directory, { recursive: true, force: true });
  }

  try {
    await untilAnswering(`http://${address}`, child);
  } catch (error) {
    await stop();
    throw new Error(`The S3 server did not start: ${output().trim() || String(error)}`, { cause: error });
  }
  return { endpoint: `http://${address}`, accessKeyId, secretAccessKey, region, stop };
}

function collectOutput(child: ChildProcess): () => string {
  let text = '';
  const collect = (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-4_000);
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  child.on('error', (error) => collect(Buffer.from(error.message)));
  return () => text;
}

async function untilAnswering(endpoint: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + startLimitMs;
  while (Date.now() < deadline) {
    if (hasEnded(child)) throw new Error('it ended by itself');
    try {
      // Any answer will do; without a signature it is a refusal.
      await (await fetch(endpoint, { signal: AbortSignal.timeout(1_000) })).arrayBuffer();
      return;
    } catch {
      await pause(50);
    }
  }
  throw new Error(`no answer within ${startLimitMs} ms`);
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const forced = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
  await ended;
  clearTimeout(forced);
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('No free port.'));
      });
    });
  });
}

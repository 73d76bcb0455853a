import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chown, glob, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { installPackages } from './debian.ts';

const run = promisify(execFile);
const startMilliseconds = 30_000;
const stopMilliseconds = 15_000;

/** A PostgreSQL server for tests, alone on a loopback port and gone when it is stopped. */
export interface RunningPostgres {
  readonly url: string;
  stop(): Promise<void>;
}

/** Who the server runs as: PostgreSQL refuses to run as root. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Starts a server from what is installed, or from Debian's packages. Throws with a plain reason. */
export async function startPostgres(): Promise<RunningPostgres> {
  const binaries = (await findBinaries()) ?? (await install());
  const owner = process.getuid?.() === 0 ? await postgresUser() : undefined;
  const directory = await mkdtemp(join(tmpdir(), 'millrace-postgres-'));
  let server: ChildProcess | undefined;
  const stop = async () => {
    if (server) await end(server);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    if (owner) await chown(directory, owner.uid, owner.gid);
    const cluster = join(directory, 'cluster');
    const options = {
      ...owner,
      cwd: directory,
      timeout: startMilliseconds,
      env: { LC_ALL: 'C', PATH: binaries },
    };
    const initialize = [
      '-D',
      cluster,
      '-U',
      'postgres',
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--no-locale',
      '--no-sync',
    ];
    await run(join(binaries, 'initdb'), initialize, options);
    const port = await freePort();
    // Speed over safety: nothing here outlives the tests.
    const settings = {
      listen_addresses: '127.0.0.1',
      port,
      unix_socket_directories: directory,
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_connections: 200,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    // Into a file and not a pipe, on which the server would wait for a caller that does not read it.
    const logFile = join(directory, 'log');
    const log = await open(logFile, 'a');
    server = spawn(join(binaries, 'postgres'), ['-D', cluster, ...flags], {
      ...owner,
      cwd: directory,
      env: options.env,
      stdio: ['ignore', log.fd, log.fd],
    });
    await log.close();
    await ready(server, logFile);
    return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The folder of the newest installed server, where Debian or the PATH has one. */
async function findBinaries(): Promise<string | undefined> {
  const found: string[] = [];
  for await (const path of glob('/usr/lib/postgresql/*/bin')) found.push(path);
  found.sort((left, right) => version(right) - version(left));
  for (const folder of [...found, ...(process.env.PATH ?? '').split(':')]) {
    try {
      await access(join(folder, 'initdb'));
      await access(join(folder, 'postgres'));
      return folder;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function version(path: string): number {
  return Number(path.split('/').at(-2)) || 0;
}

async function install(): Promise<string> {
  await installPackages('postgresql');
  const binaries = await findBinaries();
  if (binaries === undefined) throw new Error('the package postgresql brought no server with it');
  return binaries;
}

async function postgresUser(): Promise<Owner> {
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [name, , uid, gid] = line.split(':');
    if (name === 'postgres') return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('there is no user "postgres" to run the server as, and root cannot');
}

/** A port that is free now. Another process could take it first; the server then fails to start. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

async function ready(server: ChildProcess, logFile: string): Promise<void> {
  const limit = AbortSignal.timeout(startMilliseconds);
  let fault: Error | undefined;
  server.once('error', (error) => {
    fault = error;
  });
  while (true) {
    const said = await readFile(logFile, 'utf8');
    if (said.includes('ready to accept connections')) return;
    if (fault) throw fault;
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended while starting: ${said.slice(-1_000)}`);
    if (limit.aborted) throw new Error(`PostgreSQL did not start in time: ${said.slice(-1_000)}`);
    await delay(20);
  }
}

/** Fast shutdown first, which drops connections and finishes; then without mercy. */
async function end(server: ChildProcess): Promise<void> {
  if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill('SIGINT');
  const limit = setTimeout(() => server.kill('SIGKILL'), stopMilliseconds);
  await exited;
  clearTimeout(limit);
}

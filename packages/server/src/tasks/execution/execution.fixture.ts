/** An execution over folders of code written by a test. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../platform/clock.ts';
import { silentLog } from '../../platform/log.ts';
import { randomId, systemRandom } from '../../platform/random.ts';
import type { RunnableVersion } from '../version.ts';
import type { Execution, InvocationResult, OutputLine, TaskPool } from './execution.ts';
import { type ExecutionOptions, openExecution } from './open.ts';

/** Code by the paths of its files. */
export type CodeFiles = Readonly<Record<string, string | Uint8Array>>;

export interface Site {
  readonly execution: Execution;
  readonly lines: OutputLine[];
  readonly directory: string;
  /** Stands in for the service that tasks publish to. */
  readonly service: { readonly port: number; readonly paths: string[] };
  /** A version with this code; `#!` files are made executable. */
  version(files: CodeFiles, settings?: Partial<RunnableVersion>): Promise<RunnableVersion>;
  pool(files: CodeFiles, settings?: Partial<RunnableVersion>): Promise<TaskPool>;
  close(): Promise<void>;
}

export async function openSite(options: Partial<ExecutionOptions> = {}): Promise<Site> {
  // As the service has it: what tasks are to see must be made readable by name.
  process.umask(0o077);
  const directory = await mkdtemp(join(tmpdir(), 'millrace-execution-'));
  const paths: string[] = [];
  const server: Server = createServer((request, response) => {
    paths.push(request.url ?? '');
    response.end('from the service');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const lines: OutputLine[] = [];
  const execution = await openExecution({
    sandbox: 'none',
    network: 'none',
    networkAllow: [],
    serviceAddress: () => ({ host: '127.0.0.1', port }),
    scratchDirectory: join(directory, 'scratch'),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    onLine: (_version, line) => lines.push(line),
    ...options,
  });

  async function version(
    files: CodeFiles,
    settings: Partial<RunnableVersion> = {},
  ): Promise<RunnableVersion> {
    const codeDirectory = join(directory, 'code', randomId(systemRandom));
    for (const [name, text] of Object.entries(files)) {
      const path = join(codeDirectory, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
      // The modes that unpacked code has.
      for (let folder = dirname(path); folder.startsWith(codeDirectory); folder = dirname(folder))
        await chmod(folder, 0o755);
      await chmod(path, typeof text === 'string' && text.startsWith('#!') ? 0o755 : 0o644);
    }
    return {
      organization: { id: 'o1', name: 'acme' },
      taskId: 'enrich',
      version: '7',
      runtime: 'NODEJS26_X',
      handler: 'index.handler',
      codeDirectory,
      memoryMb: 256,
      timeoutSec: 10,
      concurrency: 1,
      environment: {},
      apiKey: 'mr_secret',
      ...settings,
    };
  }

  return {
    execution,
    lines,
    directory,
    service: { port, paths },
    version,
    pool: async (files, settings) => execution.open(await version(files, settings)),
    async close() {
      await execution.close();
      server.close();
      server.closeAllConnections();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

let requests = 0;

/** Invokes with a value and gives back the value of the answer, or the failure. */
export async function call(
  pool: TaskPool,
  event: unknown = {},
  more: { signal?: AbortSignal; onLine?: (line: OutputLine) => void; requestId?: string } = {},
): Promise<{ value: unknown } | Extract<InvocationResult, { outcome: 'failure' }>> {
  requests += 1;
  const result = await pool.invoke({
    requestId: `request-${requests}`,
    event: Buffer.from(JSON.stringify(event)),
    ...more,
  });
  if (result.outcome === 'failure') return result;
  const value: unknown = JSON.parse(Buffer.from(result.payload).toString());
  return { value };
}

/** The value of an answer that has to be one. */
export async function answerOf(pool: TaskPool, event: unknown = {}): Promise<unknown> {
  const result = await call(pool, event);
  if ('value' in result) return result.value;
  throw new Error(`${result.kind} ${result.error.type}: ${result.error.message}`);
}

/** The failure of an invocation that has to fail, as `kind type: message`. */
export async function failureOf(pool: TaskPool, event: unknown = {}): Promise<string> {
  const result = await call(pool, event);
  if ('value' in result) throw new Error(`It answered ${JSON.stringify(result.value)}.`);
  return `${result.kind} ${result.error.type}: ${result.error.message}`;
}

/** Waits until something is so. */
export async function until(what: string, isSo: () => boolean, limitMs = 5000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`It never happened that ${what}.`);
    await pause(10);
  }
}

/** How many processes of the host have this text on their command line. */
export function running(text: string): number {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandLine(name).includes(text)).length;
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

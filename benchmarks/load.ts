import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rawLoad } from './raw-load.ts';

const run = promisify(execFile);

export interface LoadOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
  /** Sent with POST, when given. `NUMBER` in the URL stands for a number from 0 to 999 that changes each time. */
  readonly body?: string;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p99Milliseconds: number;
}

export interface LoadTool {
  readonly name: string;
  measure(options: LoadOptions): Promise<LoadResult>;
}

/**
 * The client that makes the load: wrk, from Debian's packages, because it costs so little that the server
 * is what is measured; where it cannot be had, a small client of our own over plain sockets.
 */
export function findLoadTool(): LoadTool {
  if (!has('wrk') && has('apt-get') && process.getuid?.() === 0) {
    process.stderr.write('installing wrk from the packages of the system\n');
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', timeout: 120_000 });
    spawnSync('apt-get', ['install', '-y', '-qq', 'wrk'], { stdio: 'ignore', timeout: 120_000 });
  }
  return has('wrk') ? { name: 'wrk', measure: wrk } : { name: 'plain sockets', measure: rawLoad };
}

function has(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

/** The script that makes wrk send a body: without one it can only GET. */
async function postScript({ url, body = '', headers = {} }: LoadOptions): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'millrace-bench-')), 'post.lua');
  const { pathname, search } = new URL(url);
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[${quoted(name)}] = ${quoted(value)}`,
  );
  const [before = '', after] = `${pathname}${search}`.split('NUMBER');
  const path =
    after === undefined ? quoted(before) : `${quoted(before)} .. (count % 1000) .. ${quoted(after)}`;
  await writeFile(
    file,
    `${lines.join('\n')}
wrk.method = "POST"
wrk.body = ${quoted(body)}
local count = 0
request = function()
  count = count + 1
  return wrk.format(nil, ${path})
end
`,
  );
  return file;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

async function wrk(options: LoadOptions): Promise<LoadResult> {
  if (options.body !== undefined) return runWrk(options, ['-s', await postScript(options)]);
  const headers = Object.entries(options.headers ?? {}).flatMap(([name, value]) => [
    '-H',
    `${name}: ${value}`,
  ]);
  return runWrk(options, headers);
}

async function runWrk(options: LoadOptions, more: readonly string[]): Promise<LoadResult> {
  const { stdout } = await run(
    'wrk',
    ['-t1', `-c${options.connections}`, `-d${options.seconds}s`, '--latency', ...more, options.url],
    { timeout: (options.seconds + 30) * 1000 },
  );
  const failed = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1];
  if (failed !== undefined) throw new Error(`${failed} requests were not answered with success`);
  const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  const p99 = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout);
  if (!Number.isFinite(rate) || p99 === null) throw new Error(`wrk printed something else: ${stdout}`);
  const unit = { us: 0.001, ms: 1, s: 1000 }[p99[2] ?? ''] ?? Number.NaN;
  return { requestsPerSecond: rate, p99Milliseconds: Number(p99[1]) * unit };
}

import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { Millrace } from '@millrace/client';
import { figure } from '../../acceptance/harness/metrics.ts';
import { zipOf } from '../../acceptance/zip.ts';
import type { LoadTool } from '../load.ts';
import { median, type Row } from '../row.ts';
import { message, openSite, type Site } from '../site.ts';

const mostMilliseconds = 120_000;
const invokes = 500;
const starts = 5;

/** Messages in the backlog of each batch size. */
const backlogs = [
  [1, 5_000],
  [10, 40_000],
  [100, 200_000],
] as const;

/** A handler that does nothing: how many messages pass it, what a call costs, and how soon it starts. */
export async function taskRows(tool: LoadTool, seconds: number): Promise<Row[]> {
  const site = await openSite();
  const client = new Millrace({
    endpoint: site.service.url,
    apiKey: site.headers.authorization?.replace('Bearer ', ''),
    organization: site.organizationUrl.split('/').at(-1),
  });
  try {
    const rows: Row[] = [];
    for (const [batchSize, count] of backlogs) rows.push(await throughput(site, client, batchSize, count));
    rows.push(await overhead(client), await coldStart(client), await endpoint(site, client, tool, seconds));
    return rows;
  } finally {
    await site.service.remove();
  }
}

const nothing = zipOf({ 'index.mjs': 'export const handler = async () => {};' });
const hello = zipOf({
  'index.mjs': 'export const handler = async () => ({ statusCode: 200, body: "hello" });',
});

async function throughput(site: Site, client: Millrace, batchSize: number, count: number): Promise<Row> {
  const name = `nothing-${batchSize}`;
  await client.topics.set(name, { streams: [{ name }] });
  await client.tasks.deploy(name, new Uint8Array(nothing), {
    handler: 'index.handler',
    inputQueueNames: [name],
    outputQueueNames: [],
    switchToNow: false,
    batchSize,
    concurrency: 2,
  });
  const lines = Array.from({ length: 1000 }, (_value, index) =>
    message.trimEnd().replace('user-000042', `user-${String(index).padStart(6, '0')}`),
  ).join('\n');
  for (let sent = 0; sent < count; sent += 1000)
    await client.topics.publishLines(name, lines, { keyPath: '/user' });
  const handled = async () =>
    (await figure(site.service.url, 'millrace_consumers', { kind: 'task', figure: 'handled' })) ?? 0;
  const before = await handled();
  const started = performance.now();
  await client.tasks.activate(name, '1');
  while ((await handled()) - before < count) {
    if (performance.now() - started > mostMilliseconds) throw new Error(`${name} does not come to an end`);
    await pause(20);
  }
  const rate = count / ((performance.now() - started) / 1000);
  await client.tasks.delete(name);
  return {
    what: `task that does nothing, batch ${batchSize}`,
    figure: `${Math.round(rate)} messages/s`,
    bar: batchSize === 100 ? 'at least 25000/s' : 'for comparison',
    reached: batchSize !== 100 || rate >= 25_000,
  };
}

/** What a call costs besides the handler, by the clock of the service, and what the caller sees. */
async function overhead(client: Millrace): Promise<Row> {
  await client.tasks.deploy('invoked', new Uint8Array(nothing), {
    handler: 'index.handler',
    inputQueueNames: [],
    outputQueueNames: [],
    switchToNow: true,
  });
  const inside: number[] = [];
  const outside: number[] = [];
  for (let index = 0; index < invokes + 50; index += 1) {
    const started = performance.now();
    const { durationMs } = await client.tasks.invoke('invoked', {});
    if (index < 50) continue;
    inside.push(durationMs);
    outside.push(performance.now() - started);
  }
  const p99 = inside.sort((one, other) => one - other)[Math.floor(inside.length * 0.99)] ?? Number.NaN;
  return {
    what: 'overhead of an invocation',
    figure: `p50 ${median(inside).toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
    bare: `over HTTP p50 ${median(outside).toFixed(2)} ms`,
    bar: 'p50 under 1 ms',
    reached: median(inside) < 1,
  };
}

/** From the request to deploy to the first message handled, next to starting Node alone. */
async function coldStart(client: Millrace): Promise<Row> {
  const bare: number[] = [];
  const times: number[] = [];
  for (let round = 0; round < starts; round += 1) {
    const name = `cold-${round}`;
    const code = `export const handler = async (event) => { console.log('first', Date.now()); };`;
    await client.topics.set(name, { streams: [{ name }] });
    await client.topics.publish(name, 'waiting', { key: 'k' });
    const { sessionId, codeUrl } = await client.tasks.upload(
      name,
      new Uint8Array(zipOf({ 'index.mjs': code })),
    );
    const nodeStarted = performance.now();
    execFileSync(process.execPath, ['-e', '0']);
    bare.push(performance.now() - nodeStarted);
    const started = Date.now();
    await client.tasks.deployUploaded(name, sessionId, {
      codeUrl,
      handler: 'index.handler',
      inputQueueNames: [name],
      outputQueueNames: [],
      switchToNow: true,
    });
    times.push((await firstHandled(client, name)) - started);
    await client.tasks.delete(name);
  }
  const allowed = 3 * median(bare) + 100;
  return {
    what: 'task cold start, deploy to first message',
    figure: `${median(times).toFixed(0)} ms`,
    bare: `node -e 0: ${median(bare).toFixed(0)} ms`,
    bar: `at most ${allowed.toFixed(0)} ms`,
    reached: median(times) <= allowed,
  };
}

/** When the handler was called, as it printed it. */
async function firstHandled(client: Millrace, taskId: string): Promise<number> {
  const started = performance.now();
  for (;;) {
    try {
      for await (const line of client.tasks.logs(taskId)) {
        const time = /^first (\d+)/.exec(line.text)?.[1];
        if (time !== undefined) return Number(time);
      }
    } catch {
      // The task is not there yet.
    }
    if (performance.now() - started > mostMilliseconds) throw new Error('no message was handled');
    await pause(20);
  }
}

async function endpoint(site: Site, client: Millrace, tool: LoadTool, seconds: number): Promise<Row> {
  await client.tasks.deploy('hello', new Uint8Array(hello), {
    handler: 'index.handler',
    inputQueueNames: [],
    outputQueueNames: [],
    switchToNow: true,
    concurrency: 2,
    endpoint: { isPublic: true },
  });
  const { requestsPerSecond, p99Milliseconds } = await tool.measure({
    url: `${site.organizationUrl}/endpoint/hello/`,
    headers: {},
    connections: 16,
    seconds,
  });
  return {
    what: 'endpoint of a task',
    figure: `${Math.round(requestsPerSecond)}/s, p99 ${p99Milliseconds.toFixed(1)} ms`,
    bar: 'for comparison',
    reached: true,
  };
}

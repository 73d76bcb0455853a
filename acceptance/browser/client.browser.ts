import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { newApiKey, newOrganization, newPerson } from '../harness/people.ts';
import { type RunningService, startService } from '../harness/service.ts';

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let site: Server;
let service: RunningService;
let context: BrowserContext;
let page: Page;
let profile: string;
let connection: { endpoint: string; apiKey: string; organization: string };

before(async () => {
  const entry = fileURLToPath(new URL('../../packages/client/src/index.ts', import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    minify: true,
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  assert.ok(code.length > 1000 && code.length < 40_000, `the client is ${code.length} bytes for a browser`);
  site = createServer((request, response) => {
    const isCode = request.url === '/client.js';
    response.setHeader('content-type', isCode ? 'text/javascript' : 'text/html');
    response.end(isCode ? code : '<!doctype html><title>a shop</title>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const address = site.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  service = await startService({ environment: { MILLRACE_CORS_ORIGINS: origin } });
  const person = await newPerson(service);
  const organization = await newOrganization(service, person);
  const { secret } = await newApiKey(service, person.accessToken, organization);
  connection = { endpoint: service.url, apiKey: secret, organization };
  profile = await mkdtemp(join(tmpdir(), 'millrace-browser-'));
  context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.MILLRACE_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: flags,
  });
  page = await context.newPage();
  await page.goto(origin);
});

after(async () => {
  await context.close();
  await new Promise((resolve) => site.close(resolve));
  await service.remove();
  await rm(profile, { recursive: true, force: true });
});

/** Runs code in the page with the client of an organization at hand. */
function inPage<Result>(work: string): Promise<Result> {
  const whole = `(async () => {
    const { Millrace, MillraceError } = await import('/client.js');
    const millrace = new Millrace(${JSON.stringify(connection)});
    ${work}
  })()`;
  return page.evaluate(whole);
}

it('publishes, keeps state and queries from a page of another origin', async () => {
  const answer = await inPage<unknown>(`
    await millrace.topics.publish('clicks', { page: '/' }, { key: 'k' });
    const publisher = millrace.topics.publisher('clicks', { keyPath: '/user' });
    for (let index = 0; index < 500; index += 1) await publisher.publish({ user: 'u' + (index % 5), page: '/p' });
    const totals = await publisher.flush();
    const entry = await millrace.state.increment(['page', '/'], 'views');
    const rows = await millrace.queries.run('SELECT page, count(*) AS views FROM clicks GROUP BY page ORDER BY page');
    const all = [];
    for await (const row of rows) all.push(row);
    return { totals, views: entry.attributes.views, all };
  `);
  assert.deepEqual(answer, {
    totals: { accepted: 500, duplicates: 0, rejected: 0 },
    views: 1,
    all: [
      { page: '/', views: '1' },
      { page: '/p', views: '500' },
    ],
  });
});

it('downloads a file with progress, and names what went wrong', async () => {
  const answer = await inPage<{ start: string; progressed: boolean; code: string; requestId: boolean }>(`
    let progressed = false;
    let start = '';
    for await (const file of millrace.topics.files('clicks')) {
      const stream = await millrace.topics.download('clicks', file.key, { onProgress: () => { progressed = true; } });
      start = new TextDecoder().decode((await new Response(stream).arrayBuffer()).slice(0, 4));
      break;
    }
    const error = await millrace.topics.schema('nothing-here').catch((caught) => caught);
    return { start, progressed, code: error.code, requestId: error.requestId !== undefined };
  `);
  assert.deepEqual(answer, { start: 'PAR1', progressed: true, code: 'SCHEMA_NOT_FOUND', requestId: true });
});

it('follows a topic live until it is told to stop', async () => {
  const answer = await inPage<unknown>(`
    const stop = new AbortController();
    const heard = (async () => {
      for await (const message of millrace.topics.tail('live', { signal: stop.signal })) return message.body;
    })();
    let body;
    heard.then((value) => { body = value; });
    for (let tries = 0; body === undefined && tries < 100; tries += 1) {
      await millrace.topics.publish('live', { n: 1 }, { key: 'k' });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    stop.abort();
    return body;
  `);
  assert.deepEqual(answer, { n: 1 });
});

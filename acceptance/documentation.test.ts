import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { listOperations, openApiPath, problemCodes, problems, problemType } from '@millrace/contract';
import { Validator } from '@seriousme/openapi-schema-validator';
import { type Answer, call, checkProblem, contract, read } from './harness/client.ts';
import { exchange } from './harness/connection.ts';
import { figure, readSamples } from './harness/metrics.ts';
import { fresh, newOrganization, newPerson } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

/** Holds that a page may be shown and can do nothing: no script, no request, no frame. */
function checkPage(answer: Answer, what: string): void {
  assert.equal(answer.status, 200, what);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/html; charset=utf-8$/i, what);
  assert.match(answer.text, /^<!doctype html>/i, what);
  assert.match(answer.text, /<title>[^<]+<\/title>/, what);
  const policy = answer.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/, what);
  assert.match(policy, /frame-ancestors 'none'/, what);
  assert.doesNotMatch(policy, /script-src[^;]*unsafe-inline|unsafe-eval|\*/, what);
  assert.doesNotMatch(answer.text, /<script|\son[a-z]+=|javascript:/i, what);
  assert.doesNotMatch(
    answer.text,
    /(src|href)="https?:\/\/(?!127\.0\.0\.1)/,
    `${what} loads nothing from elsewhere`,
  );
}

describe('the documentation of a server', () => {
  let service: RunningService;
  before(async () => {
    service = await startService({ environment: { MILLRACE_LIMIT_STATE_PAGE: '777' } });
  });
  after(() => service.remove());

  const get = async (path: string) => read(await fetch(`${service.url}${path}`, { redirect: 'manual' }));

  it('is a valid OpenAPI document with every operation, and says where the server is', async () => {
    const answer = await get('/openapi.json');
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json; charset=utf-8$/);
    const document = JSON.parse(answer.text);
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(answer.text));
    assert.ok(valid, JSON.stringify(errors)?.slice(0, 2000));
    assert.equal(document.servers[0].url, service.url);
    const health: { version?: string } = JSON.parse((await get('/v1/health')).text);
    assert.equal(document.info.version, health.version);
    for (const operation of listOperations(contract)) {
      const methods = document.paths[openApiPath(operation.path)];
      const method = operation.method === 'ANY' ? 'get' : operation.method.toLowerCase();
      assert.ok(methods?.[method], operation.id);
    }
    assert.match(answer.text, /"maximum":777\b/, 'the limits are those of this server');
  });

  it('is a page with every operation, that can do nothing but be read', async () => {
    const answer = await get('/docs');
    checkPage(answer, '/docs');
    const words = answer.text.replace(/<[^>]+>/g, '');
    for (const { id, path } of listOperations(contract)) {
      assert.ok(answer.text.includes(`id="${id}"`), `${id} has a place to link to`);
      assert.ok(words.includes(path), path);
    }
    const anchors = [...answer.text.matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor ?? '');
    assert.ok(anchors.length >= listOperations(contract).length);
    for (const anchor of new Set(anchors)) assert.ok(answer.text.includes(`id="${anchor}"`), `#${anchor}`);
  });

  it('has no link into nothing', async () => {
    const pages = ['/docs', '/docs/errors'];
    const paths = new Set<string>();
    for (const page of pages) {
      const { text } = await get(page);
      for (const [, path = ''] of text.matchAll(/href="(\/[^"#]*)/g)) paths.add(path);
    }
    assert.ok(paths.size > 0);
    for (const path of paths) assert.equal((await get(path)).status, 200, path);
  });

  it('explains every problem at the path that its type names', async () => {
    checkPage(await get('/docs/errors'), '/docs/errors');
    for (const code of problemCodes) {
      const page = await get(problemType(code));
      checkPage(page, code);
      assert.ok(page.text.includes(code), code);
      assert.ok(page.text.includes(String(problems[code].status)), code);
    }
    for (const path of [
      '/docs/errors/none',
      '/docs/errors/%3Cscript%3E',
      '/docs/errors/__proto__',
      '/docs/none',
    ]) {
      const missing = await get(path);
      assert.equal(missing.status, 404, path);
      checkProblem(missing);
    }
  });

  it('is where the root leads to', async () => {
    const root = await get('/');
    assert.ok([301, 302, 303, 307, 308].includes(root.status));
    assert.equal(new URL(root.headers.get('location') ?? '', service.url).href, `${service.url}/docs`);
    const followed = await fetch(service.url);
    assert.equal(followed.status, 200);
    checkPage(await read(followed), '/');
  });
});

describe('the figures of a server', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.remove());

  const count = (operation: string, status: string) =>
    figure(service.url, 'millrace_http_request_duration_seconds_count', { operation, status });

  it('count requests by operation and status', async () => {
    const before = (await count('ping', '200')) ?? 0;
    for (let each = 0; each < 5; each += 1) await call(service.url, 'ping');
    assert.equal(await count('ping', '200'), before + 5);
    await call(service.url, 'whoAmI');
    assert.equal(await count('whoAmI', '401'), 1);
    const sum = await figure(service.url, 'millrace_http_request_duration_seconds_sum', {
      operation: 'ping',
    });
    assert.ok(sum !== undefined && sum > 0 && sum < 60);
  });

  it('tell of the process and which version it is', async () => {
    const health: { version?: string } = JSON.parse((await call(service.url, 'ping')).text);
    const { version = '' } = health;
    assert.equal(await figure(service.url, 'millrace_build_info', { version }), 1);
    const names = new Set((await readSamples(service.url)).map((sample) => sample.name));
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_open_fds',
      'process_start_time_seconds',
      'nodejs_eventloop_lag_seconds',
      'nodejs_heap_size_used_bytes',
    ]) {
      assert.ok(names.has(name), name);
    }
  });

  it('have no label that a visitor can write', async () => {
    const person = await newPerson(service);
    const organizationName = await newOrganization(service, person);
    await call(service.url, 'rateLimitGet', { token: person.accessToken, path: { organizationName } });
    const before = (await readSamples(service.url)).length;
    const marks = Array.from({ length: 50 }, () => fresh('mark'));
    for (const mark of marks) {
      await fetch(`${service.url}/${mark}`);
      await fetch(`${service.url}/v1/organization/${mark}/members?${mark}=1`);
      await fetch(`${service.url}/docs/errors/${mark}`, { headers: { 'user-agent': mark } });
      await exchange(service.url, `PROPFIND /${mark} HTTP/1.1\r\nHost: ${mark}\r\n\r\n`);
    }
    const samples = await readSamples(service.url);
    assert.ok(((await count('unknown', '404')) ?? 0) >= 50, 'unknown paths are counted under one name');
    assert.ok(samples.length < before + 100, `${samples.length - before} new figures`);
    const known = new Set<string>([...Object.keys(contract.operations), 'unknown']);
    const seen = new Set(
      samples.map((sample) => sample.labels.operation).filter((each) => each !== undefined),
    );
    const ofService = [...seen].filter((operation) => !known.has(operation));
    assert.ok(ofService.length < 15, ofService.join(', '));
    const text = JSON.stringify(samples);
    for (const secret of [...marks, organizationName, person.username, person.email]) {
      assert.ok(!text.includes(secret), `${secret} is in the figures`);
    }
  });
});

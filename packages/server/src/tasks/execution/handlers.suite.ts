/** What a handler can count on, whatever holds its process. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { answerOf, call, failureOf, openSite, type Site } from './execution.fixture.ts';
import type { OutputLine } from './execution.ts';
import type { ExecutionOptions } from './open.ts';

export function handlersSuite(name: string, options: Partial<ExecutionOptions>): void {
  describe(`Node handlers ${name}`, () => {
    let site: Site;
    before(async () => {
      site = await openSite(options);
    });
    after(() => site.close());

    const shapes: Record<string, { files: Record<string, string>; handler?: string }> = {
      'CommonJS with async': { files: { 'index.js': 'exports.handler = async (e) => ({ got: e.n });' } },
      'CommonJS with a callback': {
        files: {
          'index.js': 'exports.handler = (e, c, done) => setTimeout(() => done(null, { got: e.n }), 5);',
        },
      },
      'an ES module': { files: { 'index.mjs': 'export const handler = async (e) => ({ got: e.n });' } },
      'an ES module by package type': {
        files: {
          'package.json': '{"type":"module"}',
          'index.js': 'import "node:fs"; export const handler = (e) => ({ got: e.n });',
        },
      },
      'ES syntax without saying so': {
        files: { 'index.js': 'export const handler = (e) => ({ got: e.n });' },
      },
      'top-level await': {
        files: {
          'index.mjs':
            'const one = await new Promise((r) => setTimeout(r, 5, 1)); export const handler = (e) => ({ got: e.n * one });',
        },
      },
      'a folder and another export': {
        files: { 'source/deep/work.cjs': 'exports.run = { it: (e) => ({ got: e.n }) };' },
        handler: 'source/deep/work.run.it',
      },
      'a default export': {
        files: { 'index.mjs': 'export default (e) => ({ got: e.n });' },
        handler: 'index.default',
      },
      'context.succeed': {
        files: {
          'index.js': 'exports.handler = (e, c) => { setTimeout(() => c.succeed({ got: e.n }), 5); };',
        },
      },
      'its own modules': {
        files: {
          'index.js':
            'const { double } = require("double"); exports.handler = (e) => ({ got: double(e.n) / 2 });',
          'node_modules/double/package.json': '{"name":"double","main":"main.js"}',
          'node_modules/double/main.js': 'exports.double = (n) => n * 2;',
        },
      },
    };
    for (const [shape, { files, handler = 'index.handler' }] of Object.entries(shapes)) {
      it(`run with ${shape}`, async () => {
        const pool = await site.pool(files, { handler });
        assert.deepEqual(await answerOf(pool, { n: 21 }), { got: 21 });
        assert.deepEqual(
          await answerOf(pool, { n: 'ü€' }).catch(() => 0),
          shape === 'top-level await' || shape === 'its own modules' ? { got: null } : { got: 'ü€' },
        );
        await pool.close();
      });
    }

    it('get a context that says what runs, for whom and how long', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = async (e, c) => ({ ...c, left: c.getRemainingTimeInMillis() });`,
      });
      const result = await call(pool, {}, { requestId: 'the-request' });
      assert.ok('value' in result && typeof result.value === 'object' && result.value !== null);
      const { left, ...rest } = Object.fromEntries(Object.entries(result.value));
      assert.ok(typeof left === 'number' && left > 5000 && left <= 10_000, String(left));
      assert.deepEqual(rest, {
        awsRequestId: 'the-request',
        functionName: 'enrich',
        functionVersion: '7',
        memoryLimitInMB: '256',
        invokedFunctionArn: 'arn:aws:lambda:local:000000000000:function:enrich:7',
        logGroupName: '/millrace/enrich',
        logStreamName: '7',
        callbackWaitsForEmptyEventLoop: false,
      });
      await pool.close();
    });

    it('see the variables of the contract and nothing of the host', async () => {
      process.env.MILLRACE_TEST_HOST_SECRET = 'of the host';
      const pool = await site.pool(
        { 'index.js': 'exports.handler = async () => process.env;' },
        { environment: { COLOUR: "it's\nred", MILLRACE_API_KEY: 'forged', NODE_OPTIONS: '--no-warnings' } },
      );
      const seen = await answerOf(pool);
      delete process.env.MILLRACE_TEST_HOST_SECRET;
      assert.ok(typeof seen === 'object' && seen !== null);
      const { HOME, TMPDIR, PATH, LANG, TZ, LAMBDA_TASK_ROOT, AWS_LAMBDA_RUNTIME_API, ...rest } =
        Object.fromEntries(Object.entries(seen));
      for (const one of [HOME, TMPDIR, PATH, LANG, TZ, LAMBDA_TASK_ROOT, AWS_LAMBDA_RUNTIME_API])
        assert.ok(one);
      const endpoint = rest.MILLRACE_ENDPOINT;
      assert.deepEqual(rest, {
        AWS_LAMBDA_FUNCTION_NAME: 'enrich',
        AWS_LAMBDA_FUNCTION_VERSION: '7',
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
        _HANDLER: 'index.handler',
        MILLRACE_API_KEY: 'mr_secret',
        MILLRACE_ORGANIZATION: 'acme',
        MILLRACE_ENDPOINT: endpoint,
        MILLRACE_TASK_ID: 'enrich',
        MILLRACE_TASK_VERSION: '7',
        dataspray_api_key: 'mr_secret',
        dataspray_organization_name: 'acme',
        dataspray_endpoint: endpoint,
        COLOUR: "it's\nred",
        NODE_OPTIONS: '--no-warnings',
      });
      await pool.close();
    });

    it('reach the service at its endpoint, also while they load', async () => {
      const pool = await site.pool({
        'index.mjs': `const get = async (p) => (await fetch(process.env.MILLRACE_ENDPOINT + p)).text();
          const early = await get('/early'); export const handler = async () => [early, await get('/late')];`,
      });
      assert.deepEqual(await answerOf(pool), ['from the service', 'from the service']);
      assert.deepEqual(site.service.paths.splice(0), ['/early', '/late']);
      await pool.close();
    });

    it('read their code, and read and write their tmp', async () => {
      const pool = await site.pool({
        'index.mjs': `import fs from 'node:fs'; import os from 'node:os'; import path from 'node:path';
          export const handler = async () => { const f = path.join(os.tmpdir(), 'a'); fs.writeFileSync(f, 'kept');
            return [fs.readFileSync(f, 'utf8'), fs.readdirSync(process.env.LAMBDA_TASK_ROOT), fs.readFileSync('words.txt', 'utf8'), process.cwd() === process.env.LAMBDA_TASK_ROOT] };`,
        'words.txt': 'words',
      });
      assert.deepEqual(await answerOf(pool), ['kept', ['index.mjs', 'words.txt'], 'words', true]);
      await pool.close();
    });

    it('have what they print attributed to the request, on the right stream', async () => {
      const pool = await site.pool({
        'index.js': `console.log('loading'); exports.handler = async (e) => {
          console.log('one', e.n); console.error('two\\nthree'); process.stdout.write('no end of line'); return e.n; };`,
      });
      site.lines.length = 0;
      const own: OutputLine[] = [];
      await call(pool, { n: 1 }, { requestId: 'a' });
      await call(pool, { n: 2 }, { requestId: 'b', onLine: (line) => own.push(line) });
      const shown = (lines: readonly OutputLine[]) =>
        lines.map(({ requestId, stream, text }) => `${requestId} ${stream} ${text}`);
      const of = (id: string, n: number) => [
        `${id} stdout one ${n}`,
        `${id} stderr two`,
        `${id} stderr three`,
        `${id} stdout no end of line`,
      ];
      assert.deepEqual(shown(site.lines), [' stdout loading', ...of('a', 1), ...of('b', 2)]);
      assert.deepEqual(shown(own), of('b', 2));
      assert.ok(
        site.lines.every(({ version, time }) => version === '7' && Math.abs(time - Date.now()) < 60_000),
      );
      await pool.close();
    });

    it('fail with the type, message and trace of what they throw, and go on', async () => {
      const pool = await site.pool({
        'index.js': `let calls = 0; exports.handler = async (e) => { calls += 1;
          if (e.how === 'throw') throw new TypeError('no good'); if (e.how === 'text') throw 'just text';
          if (e.how === 'circle') { const o = {}; o.o = o; return o; }
          if (e.how === 'large') return 'x'.repeat(6 * 1024 * 1024); return calls; };`,
      });
      const thrown = await call(pool, { how: 'throw' });
      assert.ok('error' in thrown && thrown.kind === 'error');
      assert.deepEqual([thrown.error.type, thrown.error.message], ['TypeError', 'no good']);
      assert.match(thrown.error.trace?.join('\n') ?? '', /index\.js/);
      assert.equal(await failureOf(pool, { how: 'text' }), 'error string: just text');
      assert.match(await failureOf(pool, { how: 'circle' }), /^error Runtime\.MarshalError: /);
      assert.match(
        await failureOf(pool, { how: 'large' }),
        /^error Function\.ResponseSizeTooLarge: .* 6291458 bytes/,
      );
      assert.equal(await answerOf(pool), 5);
      assert.equal(pool.trouble, undefined);
      await pool.close();
    });

    it('crash alone: an unhandled rejection, an uncaught exception, an exit', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = async (e) => { if (e.how === 'fine') return 'fine';
          if (e.how === 'reject') { Promise.reject(new Error('nobody listens')); await new Promise((r) => setTimeout(r, 1000)); }
          if (e.how === 'throw') { setTimeout(() => { throw new RangeError('out there'); }); await new Promise((r) => setTimeout(r, 1000)); }
          console.log('last words'); process.exit(3); };`,
      });
      assert.equal(
        await failureOf(pool, { how: 'reject' }),
        'crash Runtime.UnhandledPromiseRejection: Error: nobody listens',
      );
      assert.match(pool.trouble ?? '', /nobody listens/);
      assert.equal(
        await failureOf(pool, { how: 'throw' }),
        'crash Runtime.UncaughtException: RangeError: out there',
      );
      site.lines.length = 0;
      assert.equal(
        await failureOf(pool, { how: 'exit' }),
        'crash Runtime.ExitError: The process ended with status 3 without an answer.',
      );
      assert.equal(site.lines[0]?.text, 'last words');
      assert.equal(await answerOf(pool, { how: 'fine' }), 'fine');
      assert.equal(pool.trouble, undefined);
      await pool.close();
    });

    it('whose answer can never come are told so instead of waited for', async () => {
      const pool = await site.pool({
        'index.js': `exports.handler = (e, c, done) => e.promise ? new Promise(() => {}) : undefined;`,
      });
      assert.match(await failureOf(pool, { promise: true }), /^error Runtime\.NodeJsExit: /);
      assert.equal(await answerOf(pool, {}), null);
      await pool.close();
    });

    const broken: Record<string, [Record<string, string>, RegExp, string?]> = {
      'a syntax error': [{ 'index.js': 'exports.handler = (' }, /SyntaxError/],
      'a throw while loading': [{ 'index.js': 'throw new Error("not today")' }, /Error: not today/],
      'no such file': [{ 'other.js': '' }, /ImportModuleError.*no file index/],
      'no such export': [{ 'index.js': 'exports.other = 1' }, /HandlerNotFound.*"handler"/],
      'a missing module': [{ 'index.js': 'require("left-pad")' }, /Cannot find module 'left-pad'/],
      'a handler without a dot': [{ 'index.js': '' }, /MalformedHandlerName/, 'index'],
      'an exit while loading': [{ 'index.js': 'process.exit(4)' }, /ended with status 4/],
    };
    for (const [what, [files, error, handler = 'index.handler']] of Object.entries(broken)) {
      it(`are refused by the probe for ${what}`, async () => {
        const version = await site.version(files, { handler });
        const result = await site.execution.probe(version, AbortSignal.timeout(10_000));
        assert.ok(!result.ok);
        assert.match(result.error, error);
      });
    }

    it('pass the probe when they load, and the probe leaves nothing behind', async () => {
      const version = await site.version({ 'index.js': 'exports.handler = () => 1' });
      assert.deepEqual(await site.execution.probe(version, AbortSignal.timeout(10_000)), { ok: true });
    });
  });

  describe(`other runtimes ${name}`, () => {
    let site: Site;
    before(async () => {
      site = await openSite(options);
    });
    after(() => site.close());

    it('run a Python handler with context, output and errors', async (test) => {
      const missing = site.execution.missing('PYTHON3');
      if (missing !== undefined) return test.skip(missing);
      const pool = await site.pool(
        {
          'source/work.py': `import os, helper, urllib.request
def handle(event, context):
    print("working on", event["n"])
    if event["n"] < 0:
        raise ValueError("too small")
    body = urllib.request.urlopen(os.environ["MILLRACE_ENDPOINT"] + "/python").read().decode()
    return {"n": helper.double(event["n"]), "id": context.aws_request_id, "left": context.get_remaining_time_in_millis() > 1000, "body": body, "colour": os.environ["COLOUR"]}
`,
          'helper.py': 'def double(n):\n    return n * 2\n',
        },
        { runtime: 'PYTHON3', handler: 'source/work.handle', environment: { COLOUR: "it's red" } },
      );
      site.lines.length = 0;
      const result = await call(pool, { n: 4 }, { requestId: 'p' });
      const value = { n: 8, id: 'p', left: true, body: 'from the service', colour: "it's red" };
      assert.deepEqual(result, { value });
      assert.deepEqual(
        site.lines.map(({ requestId, text }) => `${requestId} ${text}`),
        ['p working on 4'],
      );
      const failed = await call(pool, { n: -1 });
      assert.ok('error' in failed && failed.kind === 'error');
      assert.deepEqual([failed.error.type, failed.error.message], ['ValueError', 'too small']);
      assert.match(failed.error.trace?.join('\n') ?? '', /work\.py/);
      await pool.close();

      const broken = await site.version(
        { 'work.py': 'import nothing_of_that_name' },
        { runtime: 'PYTHON3', handler: 'work.handle' },
      );
      const probed = await site.execution.probe(broken, AbortSignal.timeout(10_000));
      assert.match(probed.ok ? '' : probed.error, /No module named 'nothing_of_that_name'/);
    });

    it('run a Java handler from class files', async (test) => {
      const missing = site.execution.missing('JAVA21');
      if (missing !== undefined) return test.skip(missing);
      const settings = { runtime: 'JAVA21', memoryMb: 512 } as const;
      const classes = await compiled(
        join(site.directory, 'java-source'),
        `package example;
import java.util.Map;
public class Work {
  public interface Context { String getAwsRequestId(); int getRemainingTimeInMillis(); }
  public Map<String, Object> run(Map<String, Object> event, Context context) {
    System.out.println("working on " + event.get("n"));
    int n = (Integer) event.get("n");
    if (n < 0) throw new IllegalArgumentException("too small");
    return Map.of("n", n * 2, "id", context.getAwsRequestId() + (context.getRemainingTimeInMillis() > 1000));
  }
}`,
      );
      const pool = await site.pool(classes, { ...settings, handler: 'example.Work::run' });
      site.lines.length = 0;
      assert.deepEqual(await call(pool, { n: 4 }, { requestId: 'j' }), { value: { n: 8, id: 'jtrue' } });
      assert.deepEqual(
        site.lines.map(({ requestId, text }) => `${requestId} ${text}`),
        ['j working on 4'],
      );
      assert.match(
        await failureOf(pool, { n: -1 }),
        /^error java\.lang\.IllegalArgumentException: too small/,
      );
      await pool.close();

      const absent = await site.version(classes, { ...settings, handler: 'example.Work::walk' });
      const probed = await site.execution.probe(absent, AbortSignal.timeout(30_000));
      assert.match(probed.ok ? '' : probed.error, /example\.Work has no method "walk"/);
    });

    it('run an executable called bootstrap, in sh with curl', async (test) => {
      if (!existsSync('/usr/bin/curl')) return test.skip('The host has no /usr/bin/curl.');
      const pool = await site.pool({ bootstrap: shellBootstrap }, { runtime: 'PROVIDED', handler: 'any' });
      site.lines.length = 0;
      const result = await call(pool, { n: 4 }, { requestId: 's' });
      assert.deepEqual(result, { value: { id: 's', event: { n: 4 }, handler: 'any' } });
      assert.deepEqual(
        site.lines.map(({ requestId, text }) => `${requestId} ${text}`),
        ['s working'],
      );
      assert.equal(await failureOf(pool, { fail: true }), 'error Shell.Failed: as asked');
      assert.deepEqual(await call(pool, { n: 5 }, { requestId: 't' }), {
        value: { id: 't', event: { n: 5 }, handler: 'any' },
      });
      await pool.close();
    });

    it('say why a bootstrap that cannot be run does not start', async () => {
      const version = await site.version(
        { bootstrap: '#!/no/such/interpreter\n' },
        { runtime: 'PROVIDED', handler: 'any' },
      );
      const result = await site.execution.probe(version, AbortSignal.timeout(10_000));
      assert.match(result.ok ? '' : result.error, /ended with status 12[67]/);

      const loud = await site.version(
        { bootstrap: '#!/bin/sh\necho "the licence file is missing" >&2\nexit 9\n' },
        { runtime: 'PROVIDED', handler: 'any' },
      );
      const told = await site.execution.probe(loud, AbortSignal.timeout(10_000));
      assert.match(told.ok ? '' : told.error, /ended with status 9[\s\S]*the licence file is missing/);
    });
  });
}

const shellBootstrap = `#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
while true; do
  event=$(curl -sS -D "$TMPDIR/headers" "$api/next") || exit 1
  id=$(grep -i lambda-runtime-aws-request-id "$TMPDIR/headers" | tr -d '\\r' | cut -d' ' -f2)
  case "$event" in
    *fail*) curl -sS -X POST "$api/$id/error" -d '{"errorType":"Shell.Failed","errorMessage":"as asked"}' >/dev/null ;;
    *) echo working; curl -sS -X POST "$api/$id/response" -d "{\\"id\\":\\"$id\\",\\"event\\":$event,\\"handler\\":\\"$_HANDLER\\"}" >/dev/null ;;
  esac
done
`;

/** The class files of a source of Java, by their paths in the code. */
async function compiled(directory: string, source: string): Promise<Record<string, Uint8Array>> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'Work.java'), source);
  await promisify(execFile)('javac', ['-d', join(directory, 'classes'), join(directory, 'Work.java')], {
    timeout: 60_000,
  });
  const folder = join(directory, 'classes', 'example');
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) => [`example/${name}`, await readFile(join(folder, name))]),
  );
  return Object.fromEntries(files);
}

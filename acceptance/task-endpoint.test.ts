import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { join, newApiKey, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { type Deployer, deployed, newDeployer, onTask, untilTask } from './harness/tasks.ts';

const code = {
  'index.mjs': `
export async function handler(event) {
  const { rawPath, rawQueryString, headers, body, isBase64Encoded, requestContext } = event;
  switch (rawPath) {
    case '/page':
      return {
        statusCode: 200,
        headers: { 'content-type': 'text/html; charset=utf-8' },
        cookies: ['a=1', 'b=2'],
        body: '<h1>' + rawQueryString + '</h1>',
      };
    case '/bytes':
      return {
        statusCode: 201,
        headers: { 'content-type': 'image/png' },
        body: Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8').reverse().toString('base64'),
        isBase64Encoded: true,
      };
    case '/fail':
      throw new RangeError('as told');
    case '/slow':
      return new Promise((done) => setTimeout(done, 60_000));
    default:
      return { method: requestContext.http.method, path: rawPath, headers };
  }
}
`,
};

describe('the endpoint of a task', { timeout: 120_000 }, () => {
  let service: RunningService;
  let person: Person;
  let deployer: Deployer;
  before(async () => {
    service = await startService();
    person = await newPerson(service);
  });
  after(() => service.remove());
  beforeEach(async () => {
    deployer = await newDeployer(service, person);
  });

  const deployEndpoint = (taskId: string, endpoint: object) =>
    deployed(deployer, taskId, code, { endpoint: { isPublic: true, ...endpoint }, timeoutSec: 2 });
  const send = (taskId: string, path: string, init: RequestInit = {}) =>
    fetch(`${service.url}/v1/organization/${deployer.organizationName}/endpoint/${taskId}${path}`, init);
  const problemOf = async (response: Response) => {
    const body: { code: string; detail: string } = JSON.parse(await response.text());
    return [response.status, body.code] as const;
  };

  it('serves pages and bytes to anybody when it is public', async () => {
    await deployEndpoint('site', {});
    const { body } = await onTask(deployer, 'status', 'site');
    assert.equal(
      body.endpointUrl,
      `${service.url}/v1/organization/${deployer.organizationName}/endpoint/site/`,
    );
    const page = await send('site', '/page?q=%41+b');
    assert.equal(page.status, 200);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.deepEqual(page.headers.getSetCookie(), ['a=1', 'b=2']);
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
    assert.match(page.headers.get('content-security-policy') ?? '', /sandbox/);
    assert.equal(await page.text(), '<h1>q=%41+b</h1>');
    const bytes = Uint8Array.of(0, 255, 1, 254);
    const headers = { 'content-type': 'image/png' };
    const answered = await send('site', '/bytes', { method: 'POST', headers, body: bytes });
    assert.equal(answered.status, 201);
    assert.deepEqual(new Uint8Array(await answered.arrayBuffer()), bytes.toReversed());
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const echoed = await send('site', '/deep/er%2F', { method });
      assert.equal(echoed.headers.get('content-type'), 'application/json');
      const { method: seen, path }: { method: string; path: string } = JSON.parse(await echoed.text());
      assert.deepEqual([seen, path], [method, '/deep/er%2F']);
    }
    const root = await fetch(body.endpointUrl ?? '');
    assert.equal(root.status, 200);
  });

  it('answers 502 when the task fails, 504 when it runs out of time, and 503 while it is paused', async () => {
    await deployEndpoint('site', {});
    assert.deepEqual(await problemOf(await send('site', '/fail')), [502, 'TASK_FAILED']);
    assert.deepEqual(await problemOf(await send('site', '/slow')), [504, 'TASK_TIMED_OUT']);
    assert.equal((await send('site', '/again')).status, 200);
    await onTask(deployer, 'pause', 'site');
    await untilTask(deployer, 'site', 'is paused', (task) => task.status === 'PAUSED');
    const paused = await send('site', '/page');
    assert.ok(paused.headers.get('retry-after'));
    assert.deepEqual(await problemOf(paused), [503, 'OVERLOADED']);
  });

  it('lets members in only when it is not public, and does not hand their credential to the task', async () => {
    await deployEndpoint('inside', { isPublic: false });
    const [member, stranger] = await Promise.all([newPerson(service), newPerson(service)]);
    await join(service, person, deployer.organizationName, member, 'VIEWER');
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}`, 'x-other': 'kept' } });
    assert.deepEqual(await problemOf(await send('inside', '/x')), [401, 'CREDENTIAL_MISSING']);
    assert.deepEqual(await problemOf(await send('inside', '/x', as('bad'))), [401, 'CREDENTIAL_INVALID']);
    const outside = await send('inside', '/x', as(stranger.accessToken));
    assert.deepEqual(await problemOf(outside), [404, 'ORGANIZATION_NOT_FOUND']);
    const key = await newApiKey(service, deployer.token, deployer.organizationName, {
      queueWhitelist: ['a'],
    });
    assert.deepEqual(await problemOf(await send('inside', '/x', as(key.secret))), [403, 'KEY_RESTRICTED']);
    const inside = await send('inside', '/x', as(member.accessToken));
    assert.equal(inside.status, 200);
    const { headers }: { headers: Record<string, string> } = JSON.parse(await inside.text());
    assert.deepEqual([headers.authorization, headers['x-other']], [undefined, 'kept']);
  });

  it('tells nobody but members that there is none', async () => {
    assert.deepEqual(await problemOf(await send('nothing', '/x')), [401, 'CREDENTIAL_MISSING']);
    const headers = { authorization: `Bearer ${deployer.token}` };
    assert.deepEqual(await problemOf(await send('nothing', '/x', { headers })), [404, 'TASK_NOT_FOUND']);
  });

  it('answers pages of other origins as it was deployed', async () => {
    const cors = {
      allowOrigins: ['https://app.example'],
      allowMethods: ['PUT'],
      allowHeaders: ['x-other'],
      exposeHeaders: ['x-shown'],
      allowCredentials: false,
      maxAge: 60,
    };
    await deployEndpoint('site', { cors });
    const ask = (origin: string) =>
      send('site', '/x', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } });
    const allowed = await ask('https://app.example');
    assert.equal(allowed.status, 204);
    assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://app.example');
    assert.equal(allowed.headers.get('access-control-allow-methods'), 'PUT');
    assert.equal((await ask('https://evil.example')).headers.get('access-control-allow-origin'), null);
    const answered = await send('site', '/x', { headers: { origin: 'https://app.example' } });
    assert.equal(answered.headers.get('access-control-allow-origin'), 'https://app.example');
    assert.equal(answered.headers.get('access-control-expose-headers'), 'x-shown');
    const other = await send('site', '/x', { headers: { origin: 'https://evil.example' } });
    assert.equal(other.headers.get('access-control-allow-origin'), null);
  });
});

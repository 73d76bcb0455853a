import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { client, type Deployer, deployed, invoke, newDeployer, onTask, taskLogs } from './harness/tasks.ts';
import { eventually } from './harness/waiting.ts';

describe('calling tasks', { timeout: 170_000 }, () => {
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

  it('may publish to their outputs and use state, and nothing else', async () => {
    const code = {
      'client.mjs': client,
      'index.mjs': `
import { call } from './client.mjs';
export async function handler() {
  const key = process.env.MILLRACE_API_KEY;
  return {
    output: (await call('/topic/out/message?messageKey=k', {})).status,
    other: (await call('/topic/in/message?messageKey=k', {})).status,
    state: (await call('/state/list', {})).status,
    tasks: (await call('/control/status')).status,
    members: (await call('/members')).status,
    key,
  };
}
`,
    };
    await deployed(deployer, 'prober', code, { outputQueueNames: ['out'] });
    const { body } = await invoke(deployer, 'prober', {});
    const { key, ...statuses } = Object(body.result);
    assert.deepEqual(statuses, { output: 200, other: 403, state: 200, tasks: 403, members: 403 });
    const { token, organizationName, url } = deployer;
    const path = { organizationName };
    const listed = await call(url, 'listApiKeys', { token, path });
    const own = listed.body.keys.find((each) => each.ownerType === 'TASK');
    assert.deepEqual([own?.ownerUsername, own?.revocable, own?.queueWhitelist], ['prober', false, ['out']]);
    const revoked = await call(url, 'revokeApiKey', { token, path: { ...path, apiKeyId: own?.id ?? '' } });
    assert.equal(revoked.body.code, 'KEY_NOT_REVOCABLE');
    await onTask(deployer, 'delete', 'prober');
    const late = await call(url, 'listState', { token: key, path, body: {} });
    assert.equal(late.status, 401, 'the key is retired with its version');
  });

  it('are invoked by hand with a result, or an error, and what they printed', async () => {
    const code = {
      'index.mjs': `
export async function handler(event, context) {
  console.log('called for', event.name);
  if (event.fail) throw new RangeError('as told');
  return { name: event.name, version: context.functionVersion, task: context.functionName };
}
`,
    };
    await deployed(deployer, 'hand', code);
    const good = await invoke(deployer, 'hand', { name: 'ada' });
    assert.deepEqual(good.body.result, { name: 'ada', version: '1', task: 'hand' });
    assert.ok(good.body.logs.some(({ text }) => text === 'called for ada'));
    assert.ok(good.body.durationMs >= 0);
    const bad = await invoke(deployer, 'hand', { name: 'eve', fail: true });
    assert.deepEqual(bad.body.error, { type: 'RangeError', message: 'as told' });
    const logs = await eventually('the log has both', 10_000, async () => {
      const { lines } = await taskLogs(deployer, 'hand');
      const texts = lines.filter(({ stream }) => stream === 'stdout').map(({ text }) => text);
      return texts.length === 2 ? texts : undefined;
    });
    assert.deepEqual(logs, ['called for ada', 'called for eve']);
    const first = await taskLogs(deployer, 'hand', { limit: '1', since: '2020-01-01T00:00:00.000Z' });
    assert.equal(first.lines.length, 1);
    assert.ok(first.nextCursor);
    const absent = await invoke(deployer, 'nobody', {});
    assert.equal(absent.body.code, 'TASK_NOT_FOUND');
  });

  it('show their log live', async () => {
    await deployed(deployer, 'live', {
      'index.mjs': 'export const handler = (event) => console.log(event.text);',
    });
    const { url, token, organizationName } = deployer;
    const leaving = new AbortController();
    const response = await fetch(`${url}/v1/organization/${organizationName}/control/task/live/logs`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
    assert.ok(response.body);
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })().catch(() => {});
    await eventually('the log is followed', 10_000, () => (text.includes(': following') ? true : undefined));
    await invoke(deployer, 'live', { text: 'here I am' });
    await eventually('the line comes', 10_000, () => (text.includes('here I am') ? true : undefined));
    leaving.abort();
    await reading;
  });
});

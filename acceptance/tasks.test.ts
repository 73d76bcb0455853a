import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { newPerson, type Person } from './harness/people.ts';
import { publish, publishMany } from './harness/publisher.ts';
import { type RunningService, startService } from './harness/service.ts';
import {
  client,
  counter,
  type Deployer,
  deadLetters,
  deployed,
  invoke,
  newDeployer,
  onTask,
  state,
  untilState,
  untilTask,
} from './harness/tasks.ts';
import { eventually } from './harness/waiting.ts';

const enrich = {
  'client.mjs': client,
  'index.mjs': `
import { call } from './client.mjs';
export async function handler({ Records }) {
  for (const { body, messageId, attributes } of Records) {
    const click = JSON.parse(body);
    const path = '/topic/enriched/message?messageKey=' + attributes.MessageGroupId + '&messageId=e-' + messageId;
    const answer = await call(path, { ...click, country: 'NL' });
    if (answer.status !== 200) throw new Error(answer.text);
  }
}
`,
};

describe('tasks on streams', { timeout: 170_000 }, () => {
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

  it('enrich messages and forward them, and another counts them in state with its own key', async () => {
    await publish(deployer, 'clicks', { page: '/before' }, { messageKey: 'ada', messageId: 'c-0' });
    assert.equal(
      await deployed(deployer, 'enrich', enrich, {
        inputQueueNames: ['clicks'],
        outputQueueNames: ['enriched'],
        description: 'adds the country',
      }),
      '1',
    );
    await deployed(deployer, 'count', counter, { inputQueueNames: ['enriched'] });
    const { body: status } = await onTask(deployer, 'status', 'enrich');
    assert.deepEqual(status, {
      taskId: 'enrich',
      status: 'RUNNING',
      version: '1',
      lastUpdateStatus: 'SUCCESSFUL',
      inputQueueNames: ['clicks'],
      outputQueueNames: ['enriched'],
    });
    for (let n = 1; n < 20; n += 1) {
      await publish(deployer, 'clicks', { n }, { messageKey: `k${n % 3}`, messageId: `c-${n}` });
    }
    await untilState(deployer, ['count'], 'n', 20);
  });

  it('give up on a poison message after its attempts, go on with its key, and take it again when redriven', async () => {
    const code = (poison: string) => ({
      'client.mjs': client,
      'index.mjs': `
import { call } from './client.mjs';
export async function handler({ Records }) {
  for (const { body } of Records) {
    if (body.includes(${JSON.stringify(poison)})) throw new TypeError('page is null');
    await call('/state/upsert', { keyParts: ['done', JSON.parse(body).id], attributes: {} });
  }
}
`,
    });
    const more = { inputQueueNames: ['clicks'], batchSize: 1, maxAttempts: 2 };
    await deployed(deployer, 'fragile', code('poison'), more);
    for (const id of ['poison', 'after'])
      await publish(deployer, 'clicks', { id }, { messageKey: 'ada', messageId: id });
    await publish(deployer, 'clicks', { id: 'beside' }, { messageKey: 'bob', messageId: 'beside' });
    const isDone = (id: string) =>
      eventually(`${id} is handled`, 20_000, async () => await state(deployer, ['done', id]));
    await isDone('beside');
    await isDone('after');
    const [letter, ...others] = await deadLetters(deployer, 'fragile');
    assert.equal(others.length, 0);
    assert.deepEqual(
      { ...letter, id: '', failedAt: '' },
      {
        id: '',
        topic: 'clicks',
        stream: 'clicks',
        messageKey: 'ada',
        messageId: 'poison',
        body: '{"id":"poison"}',
        attempts: 2,
        error: 'TypeError: page is null',
        failedAt: '',
      },
    );
    await deployed(deployer, 'fragile', code('nothing'), more);
    const { url, token, organizationName } = deployer;
    const redriven = await call(url, 'redriveDeadLetters', {
      token,
      path: { organizationName, taskId: 'fragile' },
      body: { ids: [letter?.id ?? ''] },
    });
    assert.deepEqual(redriven.body, { redriven: 1 });
    await isDone('poison');
    await eventually('no dead letter is left', 10_000, async () =>
      (await deadLetters(deployer, 'fragile')).length === 0 ? true : undefined,
    );
  });

  it('that are too slow are stopped, and their messages count as tried', async () => {
    const code = {
      'index.mjs': 'export const handler = () => new Promise((done) => setTimeout(done, 60_000));',
    };
    await deployed(deployer, 'slow', code, { inputQueueNames: ['clicks'], timeoutSec: 1, maxAttempts: 1 });
    await publish(deployer, 'clicks', {}, { messageKey: 'ada' });
    const [letter] = await eventually('it is a dead letter', 20_000, async () => {
      const letters = await deadLetters(deployer, 'slow');
      return letters.length > 0 ? letters : undefined;
    });
    assert.match(letter?.error ?? '', /time/i);
    const { body } = await invoke(deployer, 'slow', {});
    assert.match(`${body.error?.type} ${body.error?.message}`, /time/i);
    assert.ok(body.durationMs >= 900 && body.durationMs < 5000, `${body.durationMs} ms`);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    assert.match(
      metrics,
      /millrace_task_invocation_duration_seconds_count\{kind="stream",outcome="timeout"\} [1-9]/,
    );
    assert.match(metrics, /millrace_consumers\{kind="task",figure="dead_lettered"\} [1-9]/);
  });

  it('that crash again and again say why on their status', async () => {
    // It starts when it is deployed, and not any more when its environment says so.
    const code = {
      'client.mjs': client,
      'index.mjs': `
import { call } from './client.mjs';
const { status } = await call('/state/get', { keyParts: ['broken'] });
if (status === 200) { console.error('the configuration is broken'); process.exit(3); }
export const handler = async () => process.exit(3);
`,
    };
    await deployed(deployer, 'crashing', code, { inputQueueNames: ['clicks'] });
    const { url, token, organizationName } = deployer;
    const broken = { keyParts: ['broken'], attributes: {} };
    await call(url, 'upsertState', { token, path: { organizationName }, body: broken });
    await publish(deployer, 'clicks', {}, { messageKey: 'ada' });
    const status = await untilTask(
      deployer,
      'crashing',
      'says why',
      (body) => body.lastUpdateStatusReason !== undefined,
    );
    assert.equal(status.status, 'RUNNING');
    assert.match(status.lastUpdateStatusReason ?? '', /exit|ended|3/);
    await onTask(deployer, 'delete', 'crashing');
  });

  it('lose nothing while versions take over under load', async () => {
    const more = { inputQueueNames: ['clicks'], batchSize: 20, concurrency: 2 };
    await deployed(deployer, 'count', counter, more);
    const rounds = 20;
    const publishing = (async () => {
      for (let round = 0; round < rounds; round += 1) {
        const messages = Array.from({ length: 25 }, (_value, n) => ({
          id: `m${round}-${n}`,
          key: `k${n % 10}`,
        }));
        const paths = { messageKeyPath: '/key', messageIdPath: '/id' };
        const answer = await publishMany(deployer, 'clicks', messages, paths);
        assert.equal(answer.body.accepted, 25);
      }
    })();
    for (let version = 2; version <= 4; version += 1) {
      assert.equal(await deployed(deployer, 'count', counter, more), String(version));
    }
    await publishing;
    await untilState(deployer, ['count'], 'n', rounds * 25);
    assert.deepEqual(await deadLetters(deployer, 'count'), []);
    const { body } = await call(deployer.url, 'getVersions', {
      token: deployer.token,
      path: { organizationName: deployer.organizationName, taskId: 'count' },
    });
    assert.deepEqual(
      body.versions.map(({ version }) => version),
      ['1', '2', '3', '4'],
    );
    const back = await onTask(deployer, 'activateVersion', 'count', '2');
    assert.deepEqual([back.body.version, back.body.status], ['2', 'RUNNING']);
    const absent = await onTask(deployer, 'activateVersion', 'count', '9');
    assert.equal(absent.body.code, 'VERSION_NOT_FOUND');
  });

  it('keep messages waiting while they are paused, and are gone when they are deleted', async () => {
    await deployed(deployer, 'count', counter, { inputQueueNames: ['clicks'] });
    await publish(deployer, 'clicks', {}, { messageKey: 'ada', messageId: '1' });
    const counted = (n: number) => untilState(deployer, ['count'], 'n', n);
    await counted(1);
    assert.equal((await onTask(deployer, 'pause', 'count')).body.status, 'PAUSED');
    for (const messageId of ['2', '3'])
      await publish(deployer, 'clicks', {}, { messageKey: 'ada', messageId });
    assert.equal((await state(deployer, ['count']))?.n, 1);
    const resumed = await onTask(deployer, 'resume', 'count');
    assert.match(String(resumed.body.status), /^(STARTING|RUNNING)$/);
    await counted(3);
    assert.deepEqual((await onTask(deployer, 'delete', 'count')).body, {
      taskId: 'count',
      status: 'NOTFOUND',
    });
    assert.deepEqual((await onTask(deployer, 'delete', 'count')).body, {
      taskId: 'count',
      status: 'NOTFOUND',
    });
    assert.deepEqual((await onTask(deployer, 'status', 'count')).body, {
      taskId: 'count',
      status: 'NOTFOUND',
    });
    for (const id of ['pause', 'resume'] as const) {
      const answer = await onTask(deployer, id, 'count');
      assert.deepEqual([answer.status, answer.body.code], [404, 'TASK_NOT_FOUND'], id);
    }
  });

  it('are not blamed for what the service refuses while it stops', async () => {
    const code = {
      'client.mjs': client,
      'index.mjs': `
import { call } from './client.mjs';
const insist = async (path, body) => {
  const { status, text } = await call(path, body);
  if (status !== 200) throw new Error(text);
};
export async function handler() {
  await insist('/state/increment', { keyParts: ['begun'], attribute: 'n' });
  await new Promise((resume) => setTimeout(resume, 1500));
  await insist('/state/increment', { keyParts: ['done'], attribute: 'n' });
}
`,
    };
    await deployed(deployer, 'patient', code, { inputQueueNames: ['clicks'], maxAttempts: 1 });
    await publish(deployer, 'clicks', {}, { messageKey: 'ada' });
    await untilState(deployer, ['begun'], 'n', 1);
    const { dataDirectory } = service;
    assert.equal(await service.stop(), 0);
    service = await startService({ dataDirectory });
    deployer = { ...deployer, url: service.url };
    await untilState(deployer, ['done'], 'n', 1);
    assert.deepEqual(await deadLetters(deployer, 'patient'), []);
  });

  it('run again after a crash of the service, and go on where they were', async () => {
    await deployed(deployer, 'count', counter, { inputQueueNames: ['clicks'], batchSize: 5 });
    for (let n = 0; n < 40; n += 1) {
      await publish(deployer, 'clicks', {}, { messageKey: `k${n % 4}`, messageId: `m${n}` });
    }
    const { dataDirectory } = service;
    await service.kill();
    service = await startService({ dataDirectory });
    deployer = { ...deployer, url: service.url };
    await untilState(deployer, ['count'], 'n', 40);
    assert.equal((await onTask(deployer, 'status', 'count')).body.status, 'RUNNING');
    await publish(deployer, 'clicks', {}, { messageKey: 'k', messageId: 'last' });
    await untilState(deployer, ['count'], 'n', 41);
  });
});

import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import {
  checkDeployment,
  type Deployer,
  deploy,
  deployed,
  echo,
  invoke,
  newDeployer,
  onTask,
  openSession,
  put,
  untilTask,
  upload,
} from './harness/tasks.ts';
import { eventually } from './harness/waiting.ts';
import { zipOf } from './zip.ts';

describe('deploying tasks', { timeout: 170_000 }, () => {
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

  it('are deployed in the background when they are asked to be, and say how it went', async () => {
    const outcome = (taskId: string, sessionId: string) =>
      eventually(`${taskId} is deployed`, 20_000, async () => {
        const check = await checkDeployment(deployer, taskId, sessionId);
        return check.status === 'PROCESSING' ? undefined : check;
      });
    const good = await deploy(deployer, 'good', echo, { description: 'echoes' }, 'Event');
    assert.deepEqual([good.answer.status, good.answer.text], [202, '']);
    assert.deepEqual(await outcome('good', good.sessionId), {
      status: 'SUCCESS',
      result: { taskId: 'good', version: '1', description: 'echoes' },
    });
    const broken = { 'index.mjs': 'throw new RangeError("nothing here works");' };
    const bad = await deploy(deployer, 'bad', broken, {}, 'Event');
    assert.equal(bad.answer.status, 202);
    const failure = await outcome('bad', bad.sessionId);
    assert.equal(failure.status, 'FAILED');
    assert.match(failure.errorStr ?? '', /nothing here works/);
    assert.deepEqual(await outcome('bad', 'unknown'), { status: 'NOTFOUND' });
    const { answer } = await deploy(deployer, 'good', echo, {}, 'Sometimes');
    assert.equal(answer.status, 400);
  });

  it('are refused with a reason when their code cannot be deployed', async () => {
    const refusal = async (code: Parameters<typeof deploy>[2], more = {}) => {
      const { answer } = await deploy(deployer, 'refused', code, more);
      return [answer.status, answer.body.code, answer.body.detail] as const;
    };
    const codes = [
      await refusal(Buffer.from('this is no zip at all, whatever it says')),
      await refusal(echo, { handler: 'absent.handler' }),
      await refusal(echo, { handler: 'index.absent' }),
      await refusal(echo, { handler: 'nonsense' }),
      await refusal({ '../outside.mjs': '', ...echo }),
      await refusal({ 'index.mjs': 'throw new TypeError("page is null");' }),
      await refusal({ 'index.mjs': 'this is no JavaScript' }),
    ];
    for (const [status, code, detail] of codes)
      assert.deepEqual([status, code], [422, 'CODE_INVALID'], detail);
    assert.match(codes[1]?.[2] ?? '', /absent/);
    assert.match(codes[5]?.[2] ?? '', /TypeError.*page is null/s);
    const { body } = await onTask(deployer, 'status', 'refused');
    assert.deepEqual([body.status, body.version, body.lastUpdateStatus], ['PAUSED', undefined, 'FAILED']);
    const { answer: cycle } = await deploy(deployer, 'self', echo, {
      inputQueueNames: ['a'],
      outputQueueNames: ['a'],
    });
    assert.deepEqual([cycle.status, cycle.body.code], [409, 'TASK_CYCLE']);
    assert.match(cycle.body.detail, /task self -> topic a -> stream a -> task self/);
  });

  it('take an upload of exactly the announced length, once, and each session for one deployment', async () => {
    const { url, token, organizationName } = deployer;
    const bytes = zipOf(echo);
    const session = await openSession(deployer, 'exact', bytes.length);
    assert.equal((await put(session.presignedUrl, bytes.subarray(1))).status, 400);
    assert.equal((await put(session.presignedUrl, Buffer.concat([bytes, bytes]))).status, 400);
    const path = { organizationName, taskId: 'exact', sessionId: session.sessionId };
    const body = {
      codeUrl: session.codeUrl,
      handler: 'index.handler',
      inputQueueNames: [],
      outputQueueNames: [],
      switchToNow: false,
    };
    const headers = { InvocationType: 'RequestResponse' };
    const early = await call(url, 'deployVersion', { token, path, headers, body });
    assert.deepEqual([early.status, early.body.code], [422, 'CODE_INVALID']);
    const checked = await checkDeployment(deployer, 'exact', session.sessionId);
    assert.deepEqual(checked, { status: 'PROCESSING' });
    assert.ok((await put(session.presignedUrl, bytes)).ok);
    assert.equal((await put(session.presignedUrl, bytes)).status, 409);
    const first = await call(url, 'deployVersion', { token, path, headers, body });
    assert.equal(first.status, 200, first.text);
    const again = await call(url, 'deployVersion', { token, path, headers, body });
    assert.deepEqual([again.status, again.body.code], [409, 'SESSION_USED']);
    const other = await call(url, 'deployVersion', {
      token,
      path: { ...path, taskId: 'other' },
      headers,
      body,
    });
    assert.equal(other.status, 422);
    const tooLarge = { taskId: 'exact', contentLengthBytes: 300 * 1024 * 1024 };
    const refused = await call(url, 'uploadCode', { token, path, body: tooLarge });
    assert.equal(refused.status, 400);
    const { sessionId, codeUrl } = await upload(deployer, 'exact', echo);
    const foreign = await call(url, 'deployVersion', {
      token,
      path: { ...path, sessionId },
      headers,
      body: { ...body, codeUrl: `${codeUrl}x` },
    });
    assert.deepEqual([foreign.status, foreign.body.errors?.[0]?.pointer], [400, '/codeUrl']);
  });

  it('are closed to a circle by no change of topics', async () => {
    const { url, token, organizationName } = deployer;
    const wired = { inputQueueNames: ['a1'], outputQueueNames: ['b1'] };
    assert.equal(await deployed(deployer, 'forward', echo, wired), '1');
    const path = { organizationName, topicName: 'b1' };
    const back = { token, path, body: { streams: [{ name: 'a1' }] } };
    const refused = await call(url, 'updateTopic', back);
    assert.deepEqual([refused.status, refused.body.code], [409, 'TASK_CYCLE']);
    assert.match(refused.body.detail, /task forward -> topic b1 -> stream a1 -> task forward/);
    const body = { allowUndefined: true, topic: { streams: [{ name: 'a1' }] } };
    const undefinedTopic = await call(url, 'updateDefaultTopic', { token, path, body });
    assert.deepEqual([undefinedTopic.status, undefinedTopic.body.code], [409, 'TASK_CYCLE']);
    const own = { token, path: { organizationName, topicName: 'x' } };
    assert.equal((await call(url, 'updateTopic', { ...own, body: {} })).status, 200);
    assert.equal(
      await deployed(deployer, 'own', echo, { inputQueueNames: ['x'], outputQueueNames: ['x'] }),
      '1',
    );
    const deleted = await call(url, 'deleteTopic', own);
    assert.deepEqual([deleted.status, deleted.body.code], [409, 'TASK_CYCLE']);
    await onTask(deployer, 'delete', 'own');
    await onTask(deployer, 'delete', 'forward');
    assert.equal((await call(url, 'deleteTopic', own)).status, 200);
    assert.equal((await call(url, 'updateTopic', back)).status, 200);
  });

  it('have versions of one spelling, and another is none of theirs', async () => {
    await deployed(deployer, 'spelled', echo);
    const activate = (taskId: string, version: string) =>
      onTask(deployer, 'activateVersion', taskId, version);
    for (const version of ['01', '2', '0', 'x', '1.0', '+1', '-1', '99999999999', 'latest']) {
      const answer = await activate('spelled', version);
      assert.deepEqual([answer.status, answer.body.code], [404, 'VERSION_NOT_FOUND'], version);
    }
    assert.equal((await activate('spelled', '1')).status, 200);
    assert.equal((await activate('spelled', '')).status, 400);
    assert.equal((await activate('absent', 'x')).body.code, 'TASK_NOT_FOUND');
  });

  it('may have an environment as large as there may be', async () => {
    const names = Array.from({ length: 100 }, (_value, index) => `NAME_${index}`);
    const environment = Object.fromEntries(names.map((name) => [name, 'x'.repeat(4096)]));
    const code = {
      'index.mjs': `export const handler = () =>
        Object.entries(process.env).filter(([name, value]) => name.startsWith('NAME_') && value.length === 4096).length;`,
    };
    assert.equal(await deployed(deployer, 'large', code, { environment }), '1');
    assert.equal((await invoke(deployer, 'large', {})).body.result, 100);
  });

  it('are listed in pages', async () => {
    const { url, token, organizationName } = deployer;
    for (const taskId of ['b', 'a', 'c']) await deployed(deployer, taskId, echo, { switchToNow: false });
    const listed = await call(url, 'statusAll', { token, path: { organizationName } });
    assert.deepEqual(
      listed.body.tasks.map(({ taskId, status }) => [taskId, status]),
      [
        ['a', 'PAUSED'],
        ['b', 'PAUSED'],
        ['c', 'PAUSED'],
      ],
    );
    const wrong = await call(url, 'statusAll', {
      token,
      path: { organizationName },
      query: { cursor: 'made-up' },
    });
    assert.equal(wrong.body.code, 'TOKEN_INVALID');
  });

  it('are not run weaker than the operator asked for', async () => {
    await deployed(deployer, 'kept', echo);
    const { dataDirectory } = service;
    await service.stop();
    // The folder of Node has no bubblewrap.
    const environment = { PATH: dirname(process.execPath), MILLRACE_TASK_SANDBOX: 'bubblewrap' };
    service = await startService({ dataDirectory, environment });
    deployer = { ...deployer, url: service.url };
    assert.match(service.output().stderr, /Tasks do not run/);
    const { answer } = await deploy(deployer, 'kept', echo);
    assert.deepEqual([answer.status, answer.body.code], [422, 'RUNTIME_MISSING']);
    const task = await untilTask(
      deployer,
      'kept',
      'says why',
      (body) => body.lastUpdateStatusReason !== undefined,
    );
    assert.match(task.lastUpdateStatusReason ?? '', /bubblewrap/);
    const { body } = await invoke(deployer, 'kept', {});
    assert.match(body.error?.message ?? '', /bubblewrap/);
  });
});

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { consumerIdOf } from './task-run.ts';
import { good, type OpenDatabase, refusal, taskSite } from './task-site.fixture.ts';
import { insertTask } from './task-store.ts';

/** Code whose loading waits until the test lets it. */
const slowToLoad = 'globalThis.onLoad?.(); await globalThis.mayLoad; export const handler = () => null;';
const broken = 'throw new TypeError("page is null"); export const handler = () => null;';
/** Code whose work waits until the test lets it. */
const slowToHandle = 'export const handler = async () => { globalThis.onCall(); await globalThis.mayEnd; };';

function hold(name: 'mayLoad' | 'mayEnd'): () => void {
  const held = Promise.withResolvers<void>();
  Reflect.set(globalThis, name, held.promise);
  return held.resolve;
}

/** The life of tasks on any database. */
export function tasksSuite(engine: string, open: OpenDatabase): void {
  describe(`tasks in ${engine}`, { timeout: 120_000 }, () => {
    const site = taskSite(open);
    afterEach(() => {
      for (const name of ['mayLoad', 'mayEnd', 'onCall', 'onLoad', 'onEvent'])
        Reflect.deleteProperty(globalThis, name);
    });

    it('are not seen before they are deployed, then CREATING, then RUNNING', async () => {
      const node = await site.start();
      const release = hold('mayLoad');
      const { sessionId, request } = await site.upload(node, 'enrich', { 'index.mjs': slowToLoad });
      const address = site.addressOf('enrich');
      assert.deepEqual(await node.tasks.status(address), { taskId: 'enrich', status: 'NOTFOUND' });
      assert.deepEqual(await node.deployments.check(address, sessionId), { status: 'PROCESSING' });
      const begun = good(await node.deployments.deploy(site.owner, 'enrich', sessionId, request));
      await site.untilStatus(node, 'enrich', 'CREATING');
      assert.equal((await node.tasks.status(address)).lastUpdateStatus, 'IN_PROGRESS');
      assert.deepEqual(await node.deployments.check(address, sessionId), { status: 'PROCESSING' });
      release();
      const made = { taskId: 'enrich', version: '1', description: '' };
      assert.deepEqual(await begun.done, made);
      assert.deepEqual(await node.deployments.check(address, sessionId), { status: 'SUCCESS', result: made });
      assert.deepEqual(await node.tasks.status(address), {
        taskId: 'enrich',
        status: 'RUNNING',
        version: '1',
        lastUpdateStatus: 'SUCCESSFUL',
        inputQueueNames: ['orders'],
        outputQueueNames: [],
      });
    });

    it('wait as PAUSED without a version when they are not to be switched to, until one is activated', async () => {
      const node = await site.start();
      good(await site.deploy(node, 'enrich', undefined, { switchToNow: false, description: 'first' }));
      const address = site.addressOf('enrich');
      const waiting = { taskId: 'enrich', status: 'PAUSED', lastUpdateStatus: 'SUCCESSFUL' } as const;
      assert.deepEqual(await node.tasks.status(address), waiting);
      assert.deepEqual(good(await node.tasks.resume(address)), waiting);
      assert.deepEqual(good(await node.tasks.versions(address)), {
        status: waiting,
        versions: [{ taskId: 'enrich', version: '1', description: 'first' }],
      });
      for (const name of ['2', '01', '0', '1.0', ' 1', 'x', '999999999999', '1e0']) {
        const unknown = refusal(await node.tasks.activate(site.owner, 'enrich', name));
        assert.deepEqual(
          [unknown.code, unknown.detail],
          ['VERSION_NOT_FOUND', `The task has no version ${name}.`],
        );
      }
      assert.equal(refusal(await node.tasks.activate(site.owner, 'none', 'x')).code, 'TASK_NOT_FOUND');
      const active = good(await node.tasks.activate(site.owner, 'enrich', '1'));
      assert.deepEqual([active.status, active.version], ['RUNNING', '1']);
    });

    it('go UPDATING and RUNNING when a version takes over, and the one before finishes what it holds', async () => {
      const node = await site.start();
      const seen: string[] = [];
      let calls = 0;
      Reflect.set(globalThis, 'onCall', () => {
        calls += 1;
      });
      const end = hold('mayEnd');
      good(await site.deploy(node, 'enrich', { 'index.mjs': slowToHandle }));
      await site.publish('ada', ['held']);
      await site.until('the first version has work', () => calls === 1);
      Reflect.set(globalThis, 'onEvent', (event: { Records: { body: string }[] }) => {
        for (const record of event.Records) seen.push(record.body);
      });
      const load = hold('mayLoad');
      const code = `await globalThis.mayLoad; export const handler = async (event) => globalThis.onEvent(event);`;
      const second = site.deploy(node, 'enrich', { 'index.mjs': code });
      await site.untilStatus(node, 'enrich', 'UPDATING');
      assert.equal((await site.status(node, 'enrich')).version, '1');
      load();
      assert.equal(good(await second).version, '2');
      const { status, version } = await site.status(node, 'enrich');
      assert.deepEqual([status, version], ['RUNNING', '2']);
      assert.deepEqual([...node.execution.running].sort(), ['enrich/1', 'enrich/2']);
      end();
      await site.until('the first version has ended', () => !node.execution.running.has('enrich/1'));
      await site.publish('ada', ['after']);
      await site.until('the second version has work', () => seen.length === 1);
      assert.deepEqual(seen, ['after']);
    });

    it('keep what is active when a deployment fails, and say why', async () => {
      const node = await site.start();
      good(await site.deploy(node, 'enrich'));
      const { sessionId, request } = await site.upload(node, 'enrich', { 'index.mjs': broken });
      const begun = good(await node.deployments.deploy(site.owner, 'enrich', sessionId, request));
      const failure = refusal(await begun.done);
      assert.deepEqual([failure.code, failure.detail], ['CODE_INVALID', 'TypeError: page is null']);
      const address = site.addressOf('enrich');
      assert.deepEqual(await node.deployments.check(address, sessionId), {
        status: 'FAILED',
        errorStr: 'TypeError: page is null',
      });
      const status = await node.tasks.status(address);
      assert.deepEqual([status.status, status.version], ['RUNNING', '1']);
      assert.deepEqual(
        [status.lastUpdateStatus, status.lastUpdateStatusReason],
        ['FAILED', 'TypeError: page is null'],
      );
      assert.equal((await node.keys.list(site.owner.id)).length, 1, 'the key of the failed one is gone');
      assert.equal(good(await site.deploy(node, 'enrich')).version, '2');
      const mended = await node.tasks.status(address);
      assert.deepEqual([mended.lastUpdateStatus, mended.lastUpdateStatusReason], ['SUCCESSFUL', undefined]);
    });

    it('whose first deployment fails have no version, and the next one is their first', async () => {
      const node = await site.start();
      const files = Buffer.from('this is no zip');
      assert.equal(refusal(await site.deploy(node, 'enrich', files)).code, 'CODE_INVALID');
      const { status, version, lastUpdateStatus } = await site.status(node, 'enrich');
      assert.deepEqual([status, version, lastUpdateStatus], ['PAUSED', undefined, 'FAILED']);
      const absent = await site.deploy(node, 'enrich', { 'other.mjs': '' });
      assert.match(refusal(absent).detail, /index\.mjs/);
      assert.equal(good(await site.deploy(node, 'enrich')).version, '1');
      assert.equal((await site.status(node, 'enrich')).status, 'RUNNING');
    });

    it('stay with the active version when another cannot be activated', async () => {
      const node = await site.start();
      good(await site.deploy(node, 'enrich'));
      good(await site.deploy(node, 'enrich', undefined, { switchToNow: false }));
      const keys = await site.objects.list(`code/${site.owner.id}/`, { limit: 10 });
      const [, second] = good(await node.tasks.versions(site.addressOf('enrich'))).versions;
      assert.equal(second?.version, '2');
      // The copy of another node: it has to fetch the code, which is gone.
      const other = await site.start('n2');
      for (const { key } of keys.objects) await site.objects.delete(key);
      const failed = good(await other.tasks.activate(site.owner, 'enrich', '2'));
      assert.deepEqual([failed.version, failed.lastUpdateStatus], ['1', 'FAILED']);
      const activated = good(await node.tasks.activate(site.owner, 'enrich', '2'));
      assert.deepEqual([activated.version, activated.lastUpdateStatus], ['2', 'SUCCESSFUL']);
    });

    it('finish what is in hand when they pause, let messages wait, and go on where they were', async () => {
      const node = await site.start();
      const address = site.addressOf('enrich');
      let calls = 0;
      Reflect.set(globalThis, 'onCall', () => {
        calls += 1;
      });
      const end = hold('mayEnd');
      good(await site.deploy(node, 'enrich', { 'index.mjs': slowToHandle }));
      await site.publish('ada', ['one']);
      await site.until('it has work', () => calls === 1);
      assert.equal(good(await node.tasks.pause(address)).status, 'PAUSING');
      end();
      await site.untilStatus(node, 'enrich', 'PAUSED');
      await site.publish('ada', ['two']);
      assert.equal(good(await node.tasks.pause(address)).status, 'PAUSED');
      good(await site.deploy(node, 'enrich', { 'index.mjs': slowToHandle }));
      const switchedWhilePaused = await site.status(node, 'enrich');
      assert.deepEqual([switchedWhilePaused.status, switchedWhilePaused.version], ['PAUSED', '2']);
      assert.equal(calls, 1, 'messages wait');
      assert.equal(good(await node.tasks.resume(address)).status, 'RUNNING');
      await site.until('the rest is handled', () => calls === 2);
      assert.equal(
        good(await node.tasks.pause(address)).status,
        'PAUSED',
        'at once where nothing is in hand',
      );
    });

    it('are gone when they are deleted, with versions, keys and their place in the streams', async () => {
      const node = await site.start();
      const address = site.addressOf('enrich');
      let handled = 0;
      Reflect.set(globalThis, 'onEvent', () => {
        handled += 1;
      });
      good(await site.deploy(node, 'enrich'));
      good(await site.deploy(node, 'enrich', undefined, { switchToNow: false }));
      const secrets = await node.keys.list(site.owner.id);
      assert.deepEqual(
        secrets.map(({ ownerType, revocable, ownerUsername }) => [ownerType, revocable, ownerUsername]),
        [
          ['TASK', false, 'enrich'],
          ['TASK', false, 'enrich'],
        ],
      );
      await site.publish('ada', ['one']);
      await site.until('it is handled', () => handled === 1);
      assert.deepEqual(good(await node.tasks.delete(address)), { taskId: 'enrich', status: 'NOTFOUND' });
      assert.deepEqual(await node.keys.list(site.owner.id), []);
      assert.equal(node.execution.running.size, 0);
      for (const outcome of [
        await node.tasks.versions(address),
        await node.tasks.pause(address),
        await node.tasks.resume(address),
        await node.tasks.activate(site.owner, 'enrich', '1'),
        await node.deadLetters.list(address, undefined, 10),
        await node.deadLetters.redrive(address, undefined),
        await node.deadLetters.purge(address),
        await node.invocations.invoke(address, {}),
      ]) {
        assert.equal(refusal(outcome).code, 'TASK_NOT_FOUND');
      }
      assert.equal(good(await node.tasks.delete(address)).status, 'NOTFOUND');
      assert.deepEqual((await site.objects.list(`code/${site.owner.id}/`, { limit: 10 })).objects, []);
      const places = await site.database.query
        .selectFrom('consumer_shares')
        .selectAll()
        .where('consumer_id', '=', consumerIdOf(address))
        .execute();
      assert.deepEqual(places, []);
      assert.equal(good(await site.deploy(node, 'enrich')).version, '1');
      await site.until('messages of its streams stayed', () => handled === 2);
    });

    it('take each upload once, for its own task, and only when it can be', async () => {
      const node = await site.start();
      const { sessionId, request } = await site.upload(node, 'enrich');
      const deploy = (taskId: string, session: string, more: object = {}) =>
        node.deployments.deploy(site.owner, taskId, session, { ...request, ...more });
      assert.equal(refusal(await deploy('other', sessionId)).code, 'CODE_INVALID');
      assert.equal(
        refusal(await deploy('enrich', 'unknown', { codeUrl: 'code:unknown' })).code,
        'CODE_INVALID',
      );
      const foreign = refusal(await deploy('enrich', sessionId, { codeUrl: 'code:else' }));
      assert.deepEqual([foreign.code, foreign.errors?.[0]?.pointer], ['VALIDATION_FAILED', '/codeUrl']);
      const reserved = refusal(await deploy('enrich', sessionId, { environment: { MILLRACE_API_KEY: 'x' } }));
      assert.equal(reserved.errors?.[0]?.pointer, '/environment/MILLRACE_API_KEY');
      const absent = refusal(await deploy('enrich', sessionId, { runtime: 'JAVA21' }));
      assert.deepEqual([absent.code, absent.detail], ['RUNTIME_MISSING', 'This host has no JDK.']);
      const empty = await node.deployments.upload(site.owner.id, { taskId: 'enrich', contentLengthBytes: 5 });
      const nothing = refusal(await deploy('enrich', empty.sessionId, { codeUrl: empty.codeUrl }));
      assert.match(nothing.detail, /Nothing was uploaded/);
      assert.equal((await site.status(node, 'enrich')).status, 'NOTFOUND', 'refused before anything began');
      const two = await Promise.all([deploy('enrich', sessionId), deploy('enrich', sessionId)]);
      const codes = two.map((outcome) => (outcome instanceof Problem ? outcome.code : 'begun'));
      assert.deepEqual(codes.sort(), ['SESSION_USED', 'begun']);
      for (const outcome of two) if (!(outcome instanceof Problem)) good(await outcome.done);
      assert.equal(refusal(await deploy('enrich', sessionId)).code, 'SESSION_USED');
    });

    it('forget an upload that nobody deployed in a day, and what became of those that were', async () => {
      const node = await site.start();
      good(await site.deploy(node, 'enrich'));
      const { sessionId, request } = await site.upload(node, 'enrich');
      const yesterday = Date.now() - 25 * 60 * 60_000;
      await site.database.query.updateTable('task_deployments').set({ changed_at: yesterday }).execute();
      const late = await node.deployments.deploy(site.owner, 'enrich', sessionId, request);
      assert.match(refusal(late).detail, /expired/);
      await node.sweep();
      const address = site.addressOf('enrich');
      assert.deepEqual(await node.deployments.check(address, sessionId), { status: 'NOTFOUND' });
      const kept = await site.objects.list(`code/${site.owner.id}/`, { limit: 10 });
      assert.equal(kept.objects.length, 1, 'the code of the version is kept');
      assert.equal((await site.status(node, 'enrich')).status, 'RUNNING');
    });

    it('that would feed themselves are refused with the path', async () => {
      const node = await site.start();
      const wired = (taskId: string, input: string, output: string, more: object = {}) =>
        site.deploy(node, taskId, undefined, {
          inputQueueNames: [input],
          outputQueueNames: [output],
          ...more,
        });
      const own = refusal(await wired('a', 'x', 'x'));
      assert.equal(own.code, 'TASK_CYCLE');
      assert.match(own.detail, /task a -> topic x -> stream x -> task a/);
      good(await wired('a', 'x', 'y'));
      good(await wired('b', 'y', 'z'));
      const through = refusal(await wired('c', 'z', 'x'));
      assert.match(through.detail, /task c -> topic x -> stream x -> task a -> topic y .* -> task c/);
      good(await node.topics.setTopic(site.owner.id, 'x', { streams: [{ name: 'elsewhere' }] }, undefined));
      good(await wired('c', 'z', 'x'));
      // Not active, so it closes no circle until somebody activates it.
      good(await wired('c', 'z', 'p'));
      good(await node.topics.setTopic(site.owner.id, 'x', { streams: [{ name: 'x' }] }, undefined));
      const closed = good(await node.tasks.activate(site.owner, 'c', '1'));
      assert.deepEqual([closed.version, closed.lastUpdateStatus], ['2', 'FAILED']);
      assert.match(closed.lastUpdateStatusReason ?? '', /would feed itself/);
    });

    it('are listed in pages by their ids', async () => {
      const node = await site.start();
      const ids = Array.from({ length: 205 }, (_value, index) => `task${String(index).padStart(3, '0')}`);
      for (const taskId of [...ids].reverse()) {
        const first = { life: taskId, phase: 'PAUSED', now: 1 } as const;
        await insertTask(site.database.query, site.addressOf(taskId), first);
      }
      const listed: string[] = [];
      let after: string | undefined;
      let pages = 0;
      do {
        const page = await node.tasks.statusAll(site.owner.id, after);
        listed.push(...page.tasks.map((task) => task.taskId));
        after = page.next;
        pages += 1;
      } while (after !== undefined);
      assert.deepEqual([listed, pages], [ids, 3]);
      assert.deepEqual(await node.tasks.statusAll('another', undefined), { tasks: [], next: undefined });
    });
  });
}

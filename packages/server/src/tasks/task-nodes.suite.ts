import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { good, type Node, type OpenDatabase, refusal, taskSite } from './task-site.fixture.ts';

/** Code whose loading waits until the test lets it. */
const slowToLoad = 'globalThis.onLoad?.(); await globalThis.mayLoad; export const handler = () => null;';

/** Changes at the same time, several nodes and restarts, on any database. */
export function taskNodesSuite(engine: string, open: OpenDatabase): void {
  describe(`changes of tasks in ${engine}`, { timeout: 120_000 }, () => {
    const site = taskSite(open);
    afterEach(() => {
      for (const name of ['mayLoad', 'onLoad']) Reflect.deleteProperty(globalThis, name);
    });

    for (const nodes of [1, 2]) {
      const where = nodes === 1 ? 'on one node' : 'on two nodes';
      const both = async (): Promise<[Node, Node]> => {
        const first = await site.start('n1');
        return [first, nodes === 1 ? first : await site.start('n2')];
      };

      it(`end in one of the two orders when two deployments come at once ${where}`, async () => {
        const [one, other] = await both();
        for (let round = 0; round < 3; round += 1) {
          const taskId = `t${round}`;
          const outcomes = await Promise.all([site.deploy(one, taskId), site.deploy(other, taskId)]);
          const versions = outcomes.map((outcome) => good(outcome).version).sort();
          assert.deepEqual(versions, ['1', '2']);
          for (const node of new Set([one, other])) await site.untilStatus(node, taskId, 'RUNNING');
          const status = await site.status(one, taskId);
          assert.equal(status.lastUpdateStatus, 'SUCCESSFUL');
          assert.ok(status.version === '1' || status.version === '2');
          if (nodes === 1) assert.equal(status.version, '2');
        }
      });

      it(`end in one of the two orders when a deployment and a deletion come at once ${where}`, async () => {
        const [one, other] = await both();
        for (let round = 0; round < 6; round += 1) {
          const taskId = `t${round}`;
          if (round % 2 === 0) good(await site.deploy(one, taskId));
          const uploaded = await site.upload(one, taskId);
          const deploying = one.deployments.deploy(site.owner, taskId, uploaded.sessionId, uploaded.request);
          const deleting = other.tasks.delete(site.addressOf(taskId));
          const made = good(await good(await deploying).done);
          good(await deleting);
          const status = await site.status(one, taskId);
          const versions = await one.tasks.versions(site.addressOf(taskId));
          const keys = (await one.keys.list(site.owner.id)).filter((key) => key.ownerUsername === taskId);
          if (status.status === 'NOTFOUND') {
            assert.equal(keys.length, 0);
            continue;
          }
          await site.untilStatus(one, taskId, 'RUNNING');
          const names = good(versions).versions.map(({ version }) => version);
          assert.deepEqual([names, keys.length], [[made.version], 1], 'deleted first, deployed after');
        }
      });

      it(`leave a deployment its code while the task is deleted ${where}`, async () => {
        const [one, other] = await both();
        const first = await site.upload(one, 't');
        const begun = await one.deployments.deploy(site.owner, 't', first.sessionId, first.request);
        good(await good(begun).done);
        const mayLoad = Promise.withResolvers<void>();
        const loading = Promise.withResolvers<void>();
        Reflect.set(globalThis, 'mayLoad', mayLoad.promise);
        Reflect.set(globalThis, 'onLoad', loading.resolve);
        const index = `globalThis.onLoad?.(); await globalThis.mayLoad;
          export const { handler } = await import('./late.mjs');`;
        const files = { 'index.mjs': index, 'late.mjs': 'export const handler = () => null;' };
        const uploaded = await site.upload(one, 't', files);
        const deploying = one.deployments.deploy(site.owner, 't', uploaded.sessionId, uploaded.request);
        await loading.promise;
        const deleting = other.tasks.delete(site.addressOf('t'));
        const codeOf = ({ sessionId }: { sessionId: string }) =>
          existsSync(join(site.directory, 'n1', 'tasks', site.owner.id, 't', sessionId));
        // On one node the deletion waits for its turn.
        if (nodes === 2) await site.until('the code of before is gone', async () => !codeOf(first));
        assert.ok(codeOf(uploaded));
        mayLoad.resolve();
        good(await good(await deploying).done);
        good(await deleting);
      });

      it(`end in one of the two orders when an activation and a pause come at once ${where}`, async () => {
        const [one, other] = await both();
        for (let round = 0; round < 4; round += 1) {
          const taskId = `t${round}`;
          good(await site.deploy(one, taskId));
          good(await site.deploy(one, taskId, undefined, { switchToNow: false }));
          const [activated, paused] = await Promise.all([
            one.tasks.activate(site.owner, taskId, '2'),
            other.tasks.pause(site.addressOf(taskId)),
          ]);
          good(activated);
          good(paused);
          await site.untilStatus(one, taskId, 'PAUSED');
          const { version, lastUpdateStatus } = await site.status(other, taskId);
          assert.deepEqual([version, lastUpdateStatus], ['2', 'SUCCESSFUL']);
        }
      });
    }

    it('run on every node, and a change on one is a change on all', async () => {
      const [one, other] = [await site.start('n1'), await site.start('n2')];
      good(await site.deploy(one, 'enrich'));
      await site.until('the other runs it', () => other.execution.running.has('enrich/1'));
      good(await other.tasks.pause(site.addressOf('enrich')));
      await site.until('the first pauses', () => one.runs.find(site.addressOf('enrich'))?.isPaused === true);
      good(await one.tasks.resume(site.addressOf('enrich')));
      await site.until(
        'the other resumes',
        () => other.runs.find(site.addressOf('enrich'))?.isPaused === false,
      );
      good(await other.tasks.delete(site.addressOf('enrich')));
      await site.until('the first ends it', () => one.execution.running.size === 0);
    });

    it('run again after a restart, with their keys, and paused ones stay paused', async () => {
      const before = await site.start();
      const code = 'export const handler = (_event, { version }) => version.apiKey;';
      good(await site.deploy(before, 'running', { 'index.mjs': code }, { outputQueueNames: ['out'] }));
      good(await site.deploy(before, 'paused'));
      good(await before.tasks.pause(site.addressOf('paused')));
      await before.end();
      const node = await site.start();
      await site.until('both are settled', () => node.execution.running.size === 2);
      assert.equal((await site.status(node, 'running')).status, 'RUNNING');
      assert.equal((await site.status(node, 'paused')).status, 'PAUSED');
      assert.equal(node.runs.find(site.addressOf('paused'))?.isPaused, true);
      const { result } = good(await node.invocations.invoke(site.addressOf('running'), {}));
      const key = await node.keys.recognise(String(result));
      assert.deepEqual([key?.ownerType, key?.queueWhitelist], ['TASK', ['out']]);
    });

    it('say that a deployment failed when the process was cut off, and run on as they were', async () => {
      const crashed = await site.start();
      good(await site.deploy(crashed, 'old'));
      const mayLoad = Promise.withResolvers<void>();
      Reflect.set(globalThis, 'mayLoad', mayLoad.promise);
      let loading = 0;
      Reflect.set(globalThis, 'onLoad', () => {
        loading += 1;
      });
      const uploads = await Promise.all(
        ['old', 'new'].map(async (taskId) => {
          const uploaded = await site.upload(crashed, taskId, { 'index.mjs': slowToLoad });
          const begun = await crashed.deployments.deploy(
            site.owner,
            taskId,
            uploaded.sessionId,
            uploaded.request,
          );
          return { taskId, sessionId: uploaded.sessionId, done: good(begun).done };
        }),
      );
      await site.until('both are being tried', () => loading === 2);
      assert.equal((await site.status(crashed, 'old')).status, 'UPDATING');
      assert.equal((await site.status(crashed, 'new')).status, 'CREATING');
      // A new run of the same node: nothing of the first counts any more.
      const node = await site.start();
      for (const { taskId, sessionId } of uploads) {
        const check = await node.deployments.check(site.addressOf(taskId), sessionId);
        assert.equal(check.status, 'FAILED');
        assert.match(check.errorStr ?? '', /service ended/);
      }
      await site.untilStatus(node, 'old', 'RUNNING');
      const { version, lastUpdateStatus } = await site.status(node, 'old');
      assert.deepEqual([version, lastUpdateStatus], ['1', 'FAILED']);
      assert.equal((await site.status(node, 'new')).status, 'PAUSED');
      mayLoad.resolve();
      for (const { done } of uploads) assert.equal(refusal(await done).code, 'SESSION_USED');
      assert.equal((await node.keys.list(site.owner.id)).length, 1);
    });
  });
}

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Problem } from '../platform/problem.ts';
import { good, type Node, type OpenDatabase, refusal, taskSite } from './task-site.fixture.ts';

const streams = (...names: string[]) => ({ streams: names.map((name) => ({ name })) });

/** Changes of topics and of tasks that would meet in a circle, on any database. */
export function wiringSuite(engine: string, open: OpenDatabase): void {
  describe(`changes of topics under tasks in ${engine}`, { timeout: 120_000 }, () => {
    const site = taskSite(open);
    const wired = (node: Node, taskId: string, input: string, output: string, more: object = {}) =>
      site.deploy(node, taskId, undefined, {
        inputQueueNames: [input],
        outputQueueNames: [output],
        ...more,
      });

    it('are refused with the path when a task would feed itself', async () => {
      const node = await site.start();
      const { topics } = node;
      good(await wired(node, 'a', 'a1', 'b1'));
      const own = refusal(await topics.setTopic(site.owner.id, 'b1', streams('a1'), undefined));
      assert.equal(own.code, 'TASK_CYCLE');
      assert.equal(
        own.detail,
        'The change would make a task feed itself: task a -> topic b1 -> stream a1 -> task a.',
      );
      assert.equal((await topics.get(site.owner.id)).version, 0, 'nothing has changed');
      good(await topics.setTopic(site.owner.id, 'b1', streams('b1'), 0));
      good(await wired(node, 'b', 'b1', 'c1'));
      const through = refusal(await topics.setTopic(site.owner.id, 'c1', streams('x', 'a1'), undefined));
      assert.match(through.detail, /task b -> topic c1 -> stream a1 -> task a -> topic b1 .* -> task b\.$/);
      // Nobody publishes there for a task.
      good(await topics.setTopic(site.owner.id, 'd1', streams('a1', 'b1'), undefined));
    });

    it('are refused when what undefined topics feed would close the circle', async () => {
      const node = await site.start();
      const { topics } = node;
      const { id } = site.owner;
      good(await topics.setTopic(id, 'x', streams('elsewhere'), undefined));
      good(await wired(node, 'a', 'x', 'x'));
      const deleted = refusal(await topics.deleteTopic(id, 'x', undefined));
      assert.equal(deleted.code, 'TASK_CYCLE');
      assert.match(deleted.detail, /task a -> topic x -> stream x -> task a\.$/);
      good(await topics.setUndefined(id, { allowUndefined: false }, undefined));
      good(await topics.deleteTopic(id, 'x', undefined));
      const allowed = refusal(await topics.setUndefined(id, { allowUndefined: true }, undefined));
      assert.equal(allowed.code, 'TASK_CYCLE');
      good(await wired(node, 'b', 'y', 'z'));
      good(await topics.setTopic(id, 'x', {}, undefined));
      good(await topics.setUndefined(id, { allowUndefined: true }, undefined));
      const shared = await topics.setUndefined(id, { allowUndefined: true, topic: streams('y') }, undefined);
      assert.match(refusal(shared).detail, /task b -> topic z -> stream y -> task b\.$/);
    });

    it('are let through when they open a circle that was there before', async () => {
      const node = await site.start();
      const { topics } = node;
      const { id } = site.owner;
      good(await topics.setTopic(id, 'x', streams('elsewhere'), undefined));
      good(await wired(node, 'a', 'x', 'x'));
      // As a service wrote it that did not look.
      const document = JSON.stringify({ allowUndefined: true, topics: [['x', streams('x', 'y')]] });
      const update = site.database.query.updateTable('topic_definitions').set({ document });
      await update.where('organization_id', '=', id).execute();
      good(await topics.setTopic(id, 'other', streams('x'), undefined));
      good(await topics.setTopic(id, 'x', streams('x'), undefined));
      good(await topics.setTopic(id, 'x', streams('y'), undefined));
      assert.equal(refusal(await topics.setTopic(id, 'x', streams('x'), undefined)).code, 'TASK_CYCLE');
    });

    it('and a deployment or activation at once never close a circle together', async () => {
      const one = await site.start('n1');
      const other = await site.start('n2');
      const { id } = site.owner;
      for (let round = 0; round < 8; round += 1) {
        const [taskId, input, output] = [`t${round}`, `in${round}`, `out${round}`];
        const isDeployment = round % 2 === 0;
        if (!isDeployment) good(await wired(one, taskId, input, output, { switchToNow: false }));
        const [made, changed] = await Promise.all([
          isDeployment ? wired(one, taskId, input, output) : one.tasks.activate(site.owner, taskId, '1'),
          other.topics.setTopic(id, output, streams(input), undefined),
        ]);
        const { version } = await site.status(other, taskId);
        const isFed = (await other.topics.read(site.database.query, id)).topics.has(output);
        assert.notEqual(version === '1', isFed, 'one of the two, and not neither');
        assert.equal(changed instanceof Problem, !isFed);
        if (isDeployment) assert.equal(made instanceof Problem, isFed);
      }
    });
  });
}

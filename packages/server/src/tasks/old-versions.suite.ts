import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { codeKey } from './code.ts';
import { keptVersions } from './old-versions.ts';
import { good, type Node, type OpenDatabase, refusal, taskSite } from './task-site.fixture.ts';

/** How much of the past a task keeps, on any database. */
export function oldVersionsSuite(engine: string, open: OpenDatabase): void {
  describe(`the past of tasks in ${engine}`, { timeout: 120_000 }, () => {
    const site = taskSite(open);
    const namesOf = async (node: Node) =>
      good(await node.tasks.versions(site.addressOf('enrich'))).versions.map(({ version }) => version);
    const uploadsKept = async () => {
      const { objects } = await site.objects.list(`code/${site.owner.id}/`, { limit: 1000 });
      return objects.length;
    };

    it('is the newest versions and the active one, with their code and keys', async () => {
      const node = await site.start();
      good(await site.deploy(node, 'enrich'));
      const waiting = { switchToNow: false };
      for (let made = 0; made < keptVersions + 1; made += 1) {
        good(await site.deploy(node, 'enrich', undefined, waiting));
      }
      const newest = Array.from({ length: keptVersions }, (_value, index) => String(index + 3));
      assert.deepEqual(await namesOf(node), ['1', ...newest], 'the active one is none too many');
      const keysOf = async () => (await node.keys.list(site.owner.id)).length;
      assert.deepEqual([await uploadsKept(), await keysOf()], [keptVersions + 1, keptVersions + 1]);
      const gone = refusal(await node.tasks.activate(site.owner, 'enrich', '2'));
      assert.equal(gone.code, 'VERSION_NOT_FOUND');

      // The one that was active has work in hand for a while yet.
      const next = good(await site.deploy(node, 'enrich'));
      assert.equal(next.version, String(keptVersions + 3));
      assert.equal((await namesOf(node))[0], '1');
      good(await site.deploy(node, 'enrich', undefined, waiting));
      assert.equal((await namesOf(node)).length, keptVersions + 1);
      assert.ok(!(await namesOf(node)).includes('1'));
      assert.equal((await site.status(node, 'enrich')).version, next.version);
    });

    it('has twenty uploads that nobody deployed, the newest ones', async () => {
      const node = await site.start();
      const address = site.addressOf('enrich');
      const sessions: string[] = [];
      for (let made = 0; made < 25; made += 1) {
        sessions.push((await site.upload(node, 'enrich')).sessionId);
        // No two were made in the same millisecond, as it may be here.
        const update = site.database.query.updateTable('task_deployments');
        await update
          .set({ changed_at: Date.now() - 1000 + made })
          .where('session_id', '=', sessions.at(-1) ?? '')
          .execute();
      }
      await site.upload(node, 'another');
      assert.equal(await uploadsKept(), 21);
      const [first = '', last = ''] = [sessions[0], sessions.at(-1)];
      const { status, errorStr } = await node.deployments.check(address, first);
      assert.equal(status, 'FAILED');
      assert.match(errorStr ?? '', /20 newer uploads of this task\. Upload the code again\.$/);
      assert.deepEqual(await node.deployments.check(address, last), { status: 'PROCESSING' });
      const request = {
        codeUrl: `code:${first}`,
        handler: 'index.handler',
        inputQueueNames: [],
        outputQueueNames: [],
        switchToNow: true,
      };
      const late = await node.deployments.deploy(site.owner, 'enrich', first, request);
      assert.equal(refusal(late).code, 'SESSION_USED');

      // Sent to the URL of an upload that was dropped, while that was still good.
      await site.objects.put(codeKey(site.owner.id, first), Buffer.from('late'));
      const minutes = (count: number) => Date.now() - 24 * 3_600_000 + count * 60_000;
      const row = await site.database.query
        .selectFrom('task_deployments')
        .select('changed_at')
        .where('session_id', '=', first)
        .executeTakeFirstOrThrow();
      assert.ok(row.changed_at > minutes(14) && row.changed_at <= minutes(15), 'it is forgotten after that');
      await site.database.query
        .updateTable('task_deployments')
        .set({ changed_at: minutes(-1) })
        .where('session_id', '=', first)
        .execute();
      await node.sweep();
      assert.deepEqual(await node.deployments.check(address, first), { status: 'NOTFOUND' });
      assert.equal(await uploadsKept(), 21);
    });
  });
}

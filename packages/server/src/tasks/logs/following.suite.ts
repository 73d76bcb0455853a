import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { logEvents } from './log-events.ts';
import { type LogSite, line, organizationId, start, taskId, until } from './task-logs.fixture.ts';

/** What followers of a log must hear on every engine of the database. */
export function followingSuite(site: LogSite): void {
  describe('a follower', () => {
    it('hears what is kept from now on, on this node and on others, in one order', async () => {
      site.write('before');
      await site.logs.flush();
      const other = site.node();
      const end = await site.logs.end(organizationId, taskId);
      const one = site.follow(site.logs, end);
      const two = site.follow(other, end);
      for (let turn = 0; turn < 20; turn += 1) {
        site.write(`here ${turn}`);
        other.write(organizationId, taskId, line(`there ${turn}`));
        await Promise.all([site.logs.flush(), other.flush()]);
      }
      await until('both have heard all', () => one.heard.length === 40 && two.heard.length === 40);
      assert.deepEqual(one.texts(), two.texts());
      assert.deepEqual(one.texts(), (await site.texts()).slice(1));
      for (const place of ['here', 'there']) {
        assert.deepEqual(
          one.texts().filter((text) => text.startsWith(place)),
          Array.from({ length: 20 }, (_, turn) => `${place} ${turn}`),
        );
      }
      await Promise.all([one.stop(), two.stop()]);
    });

    it('goes on behind a page without a gap', async () => {
      site.write('1', '2', '3');
      const page = await site.logs.list(organizationId, taskId, { limit: 2 });
      const follower = site.follow(site.logs, page.next);
      site.write('4');
      await site.logs.flush();
      await until('it has caught up', () => follower.heard.length === 2);
      assert.deepEqual(follower.texts(), ['3', '4']);
      await follower.stop();
    });

    it('hears a task that has not written yet, and one of that name after it was forgotten', async () => {
      const follower = site.follow(site.logs, await site.logs.end(organizationId, taskId));
      site.write('first');
      await site.logs.flush();
      await until('it hears', () => follower.heard.length === 1);
      await site.logs.forget(organizationId, taskId);
      site.clock.advance(1);
      site.write('of the next');
      await site.logs.flush();
      await until('it hears again', () => follower.texts().includes('of the next'));
      await follower.stop();
    });

    it('hears nothing of other tasks', async () => {
      const follower = site.follow(site.logs, await site.logs.end(organizationId, taskId));
      site.logs.write(organizationId, 't2', line('other'));
      site.logs.write('o2', taskId, line('other'));
      site.write('mine');
      await site.logs.flush();
      await until('it hears', () => follower.heard.length > 0);
      assert.deepEqual(follower.texts(), ['mine']);
      await follower.stop();
    });

    it('hears more than fits in a look, all of it', async () => {
      const follower = site.follow(site.logs, await site.logs.end(organizationId, taskId));
      const texts = Array.from({ length: 3000 }, (_, index) => String(index));
      site.write(...texts);
      await site.logs.flush();
      await until('it hears all', () => follower.heard.length >= texts.length);
      assert.deepEqual(follower.texts(), texts);
      await follower.stop();
    });

    it('is told when lines were gone before it came to them', async () => {
      const logs = site.node({ keptLines: 300 });
      logs.write(organizationId, taskId, line('0'));
      await logs.flush();
      const controller = new AbortController();
      const end = await logs.end(organizationId, taskId);
      const lines = logs.follow(organizationId, taskId, controller.signal, end);
      for (let count = 1; count <= 1000; count += 1) logs.write(organizationId, taskId, line(String(count)));
      await logs.flush();
      const heard: string[] = [];
      for await (const { stream, text } of lines) {
        heard.push(stream === 'system' ? text : Number(text) > 700 ? 'kept' : text);
        if (text === '1000') break;
      }
      assert.equal(heard[0], 'Lines are missing here: they were gone before they were read.');
      assert.ok(heard.slice(1).every((text) => text === 'kept'));
      assert.ok(heard.length > 200);
    });

    it('looks for itself when no hint comes', async () => {
      const deaf = { listen: () => () => {} };
      const query = site.database.query;
      const { engine, trustMilliseconds } = site.database;
      const logs = site.node(
        {},
        {
          ...deaf,
          engine,
          query,
          trustMilliseconds,
          transaction: (work) => site.database.transaction(work),
          announce: async () => {},
          check: async () => {},
          close: async () => {},
        },
      );
      const follower = site.follow(logs, await logs.end(organizationId, taskId));
      site.write('quietly');
      await site.logs.flush();
      await until('it hears', () => follower.heard.length === 1);
      await follower.stop();
    });

    it('ends when it is told to, and when the service stops', async () => {
      const told = site.follow();
      await told.stop();
      const stopped = site.follow();
      await site.logs.close();
      await stopped.ended;
      assert.deepEqual([...told.heard, ...stopped.heard], []);
    });
  });

  describe('server-sent events of a log', () => {
    it('carry the lines, fill silence, and end when the reader leaves', async () => {
      const end = await site.logs.end(organizationId, taskId);
      const controller = new AbortController();
      const events = logEvents(
        (signal) => site.logs.follow(organizationId, taskId, signal, end),
        controller.signal,
        { quietMilliseconds: 20 },
      )[Symbol.asyncIterator]();
      assert.equal((await events.next()).value, ': following\n\n');
      assert.equal((await events.next()).value, ': nothing new\n\n');
      site.write('two\nlines');
      await site.logs.flush();
      let event = (await events.next()).value;
      for (let tries = 0; tries < 100 && event === ': nothing new\n\n'; tries += 1)
        event = (await events.next()).value;
      const time = new Date(start).toISOString();
      assert.equal(
        event,
        `data: {"time":"${time}","version":"1","requestId":"r1","stream":"stdout","text":"two\\nlines"}\n\n`,
      );
      assert.equal((await events.return?.())?.done, true);
      assert.equal((await events.next()).done, true);
    });

    it('end when the reader may no longer read, and when the service stops', async () => {
      let isAllowed = true;
      const heard: string[] = [];
      const controller = new AbortController();
      const read = async (signal: AbortSignal) => {
        const follow = (ended: AbortSignal) => site.logs.follow(organizationId, taskId, ended);
        const options = { quietMilliseconds: 20, stillAllowed: async () => isAllowed };
        for await (const event of logEvents(follow, signal, options)) heard.push(event);
      };
      const reading = read(controller.signal);
      await until('it follows', () => heard.length > 1);
      isAllowed = false;
      await reading;
      isAllowed = true;
      const again = read(controller.signal);
      controller.abort();
      await again;
    });
  });
}

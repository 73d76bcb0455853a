import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { followingSuite } from './following.suite.ts';
import { restoreLines } from './stored-line.ts';
import {
  line,
  logSite,
  type OpenDatabase,
  organizationId,
  start,
  taskId,
  until,
} from './task-logs.fixture.ts';

/** What the logs of tasks must do on every engine of the database. */
export function taskLogSuite(name: string, open: OpenDatabase): void {
  describe(`task logs on ${name}`, { timeout: 120_000 }, () => {
    const site = logSite(open);
    const numbers = (first: number, last: number) =>
      Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
    const kept = () => site.database.query.selectFrom('task_logs').selectAll().executeTakeFirst();

    describe('a line', () => {
      it('is listed as it was written, whatever is in it', async () => {
        const lines = [
          line('plain'),
          line(''),
          line('\0 \u001b[31m red \ud800 漢字 🎈 "quoted" \'quoted\' \\', {
            stream: 'stderr',
            requestId: '',
          }),
          line('{"json": [1]}', { stream: 'system', version: '12', time: start + 5 }),
        ];
        for (const each of lines) site.logs.write(organizationId, taskId, each);
        const page = await site.logs.list(organizationId, taskId, { limit: 10 });
        assert.deepEqual(page, { lines, next: undefined });
        assert.deepEqual(await site.node().list(organizationId, taskId, { limit: 10 }), page);
      });

      it('belongs to its task and its organization', async () => {
        site.write('mine');
        site.logs.write(organizationId, 't2', line('of another task'));
        site.logs.write('o2', taskId, line('of another organization'));
        assert.deepEqual(await site.texts(), ['mine']);
        const other = await site.logs.list('o2', taskId, { limit: 10 });
        assert.deepEqual(other.lines, [line('of another organization')]);
        assert.deepEqual(await site.logs.list('o3', taskId, { limit: 10 }), { lines: [], next: undefined });
      });

      it('is cut when it is too long, and never within a character', async () => {
        const logs = site.node({ lineCharacters: 10 });
        logs.write(organizationId, taskId, line('0123456789'));
        logs.write(organizationId, taskId, line('0123456789a'));
        logs.write(organizationId, taskId, line('012345678🎈b'));
        assert.deepEqual(await site.texts({}, logs), [
          '0123456789',
          '0123456789… (cut, 11 characters)',
          '012345678… (cut, 12 characters)',
        ]);
      });

      it('is kept a moment after it was written', async () => {
        const logs = site.node({ keepMilliseconds: 10 });
        logs.write(organizationId, taskId, line('soon'));
        await until('the line is kept', async () => (await kept()) !== undefined);
      });
    });

    describe('a list', () => {
      it('has the lines in the order in which they were written, in pages of any size', async () => {
        for (const [first, last] of [
          [1, 3],
          [4, 4],
          [5, 700],
          [701, 1000],
        ] as const) {
          site.write(...numbers(first, last));
          await site.logs.flush();
        }
        for (const limit of [1000, 999, 257, 256, 255, 7]) {
          const pages = await site.pages({ limit });
          assert.deepEqual(pages.flat(), numbers(1, 1000), `${limit}`);
          assert.ok(pages.slice(0, -1).every((page) => page.length === limit));
          assert.equal(pages.length, Math.ceil(1000 / limit));
        }
      });

      it('goes on behind a page with what was written meanwhile, on any node', async () => {
        site.write('1', '2', '3');
        const first = await site.logs.list(organizationId, taskId, { limit: 2 });
        const other = site.node();
        other.write(organizationId, taskId, line('4'));
        await other.flush();
        assert.deepEqual(await site.texts({ after: first.next }), ['3', '4']);
      });

      it('begins with the lines from a time on, also where times are not in order', async () => {
        const times = [1, 2, 3, 9, 4, 5, 6, 7, 8, 10];
        for (const time of times)
          site.logs.write(organizationId, taskId, line(`${time}`, { time: start + time }));
        assert.deepEqual(await site.texts({ since: start + 5 }), ['9', '5', '6', '7', '8', '10']);
        assert.deepEqual((await site.pages({ since: start + 5, limit: 2 })).flat(), [
          '9',
          '5',
          '6',
          '7',
          '8',
          '10',
        ]);
        assert.deepEqual(await site.texts({ since: start + 11 }), []);
      });

      it('has no next page where only older lines follow', async () => {
        for (const time of [1, 9, 2])
          site.logs.write(organizationId, taskId, line(`${time}`, { time: start + time }));
        const page = await site.logs.list(organizationId, taskId, { since: start + 5, limit: 1 });
        assert.deepEqual([page.lines.length, page.next], [1, undefined]);
      });

      it('can be of the newest lines', async () => {
        for (const part of [numbers(1, 300), numbers(301, 301), numbers(302, 600)]) {
          site.write(...part);
          await site.logs.flush();
        }
        assert.deepEqual(await site.texts({ newest: true, limit: 300 }), numbers(301, 600));
        assert.deepEqual(await site.texts({ newest: true, limit: 1 }), ['600']);
        assert.deepEqual(await site.texts({ newest: true, limit: 1000 }), numbers(1, 600));
      });

      it('can be of the newest lines where each was kept for itself', async () => {
        for (const text of numbers(1, 150)) {
          site.write(text);
          await site.logs.flush();
        }
        assert.deepEqual(await site.texts({ newest: true, limit: 100 }), numbers(51, 150));
        assert.deepEqual(await site.texts({ newest: true }), numbers(1, 150));
        assert.deepEqual((await site.pages({ limit: 40 })).flat(), numbers(1, 150));
      });

      it('has shorter pages where lines are long, and misses none', async () => {
        const logs = site.node({ pendingBytes: 2 ** 26, lineCharacters: 2 ** 20, keptBytes: 2 ** 26 });
        for (const text of numbers(0, 9)) logs.write(organizationId, taskId, line(text.repeat(2 ** 20)));
        const pages = await site.pages({ limit: 100 }, logs);
        assert.deepEqual(
          pages.flat().map((text) => text.charAt(0)),
          numbers(0, 9),
        );
        assert.deepEqual(
          pages.map((page) => page.length),
          [4, 4, 2],
        );
      });
    });

    describe('the bounds', () => {
      it('let the oldest lines go, by their number', async () => {
        const logs = site.node({ keptLines: 1000 });
        for (let turn = 0; turn < 30; turn += 1) {
          for (const text of numbers(turn * 100 + 1, turn * 100 + 100))
            logs.write(organizationId, taskId, line(text));
          await logs.flush();
        }
        assert.deepEqual(await site.texts({ limit: 5000 }, logs), numbers(2001, 3000));
        assert.equal((await kept())?.lines, 1000);
      });

      it('let the oldest lines go, by their size', async () => {
        const logs = site.node({ keptBytes: 20_000 });
        for (let turn = 0; turn < 30; turn += 1) {
          logs.write(organizationId, taskId, line(`${turn} ${'x'.repeat(997)}`));
          await logs.flush();
        }
        const texts = await site.texts({}, logs);
        assert.ok(texts.length >= 17 && texts.length < 20, `${texts.length}`);
        assert.ok(texts.at(-1)?.startsWith('29 '));
      });

      it('count exactly what is kept', async () => {
        const logs = site.node({ keptLines: 500 });
        for (let turn = 1; turn < 40; turn += 1) {
          for (const text of numbers(1, turn * 3)) logs.write(organizationId, taskId, line(text));
          await logs.flush();
        }
        const chunks = await site.database.query.selectFrom('task_log_chunks').selectAll().execute();
        const head = await kept();
        const sum = (of: (chunk: (typeof chunks)[number]) => number) =>
          chunks.reduce((total, chunk) => total + of(chunk), 0);
        assert.equal(
          head?.lines,
          sum((chunk) => restoreLines(chunk.content).length),
        );
        assert.equal(
          head?.lines,
          sum((chunk) => chunk.lines),
        );
        assert.equal(
          head?.bytes,
          sum((chunk) => chunk.bytes),
        );
        assert.ok((head?.lines ?? 0) <= 500);
      });

      it('drop lines that come too fast, and say so where they are missing', async () => {
        const logs = site.node({ pendingLines: 3 });
        for (const text of numbers(1, 10)) logs.write(organizationId, taskId, line(text, { version: '7' }));
        await logs.flush();
        for (const text of ['11', '12']) logs.write(organizationId, taskId, line(text));
        const said = '7 lines were dropped here: they came faster than they can be kept.';
        const { lines } = await logs.list(organizationId, taskId, { limit: 100 });
        assert.deepEqual(
          lines.map(({ text }) => text),
          ['1', '2', '3', said, '11', '12'],
        );
        assert.deepEqual(lines[3], {
          time: start,
          version: '7',
          requestId: '',
          stream: 'system',
          text: said,
        });
      });

      it('drop lines by their size, of one task or of all, and go on when there is room', async () => {
        const logs = site.node({ pendingBytes: 3_000, allPendingBytes: 5_000 });
        const long = 'x'.repeat(1_000);
        for (let count = 0; count < 4; count += 1) logs.write(organizationId, taskId, line(long));
        for (let count = 0; count < 4; count += 1) logs.write(organizationId, 't2', line(long));
        await logs.flush();
        await logs.flush();
        const count = async (task: string) =>
          (await logs.list(organizationId, task, { limit: 100 })).lines.map(({ stream, text }) =>
            stream === 'system' ? text.slice(0, 16) : text.length,
          );
        assert.deepEqual(await count(taskId), [1000, 1000, '2 lines were dro']);
        assert.deepEqual(await count('t2'), [1000, 1000, '2 lines were dro']);
        logs.write(organizationId, taskId, line('again'));
        assert.equal((await count(taskId)).at(-1), 5);
      });

      it('keep what waits when the database is away, up to a bound, and all of it once', async () => {
        let isAway = true;
        const away = {
          ...bound(site.database),
          transaction: <T>(work: Parameters<typeof site.database.transaction<T>>[0]) =>
            isAway ? Promise.reject(new Error('away')) : site.database.transaction(work),
        };
        const logs = site.node({ pendingLines: 3 }, away);
        logs.write(organizationId, taskId, line('1'));
        await assert.rejects(logs.flush(), /away/);
        for (const text of ['2', '3', '4', '5']) logs.write(organizationId, taskId, line(text));
        await assert.rejects(logs.flush(), /away/);
        isAway = false;
        await logs.flush();
        const texts = await site.texts({}, logs);
        assert.deepEqual(texts.slice(0, 3), ['1', '2', '3']);
        assert.match(texts[3] ?? '', /^2 lines were dropped/);
        assert.equal(texts.length, 4);
      });
    });

    describe('a log', () => {
      it('is there after a restart, and what was not kept at a crash is all that is lost', async () => {
        site.write('1', '2');
        await site.logs.flush();
        site.write('3');
        // Nothing is closed: this is what the next process finds.
        assert.deepEqual(await site.texts({}, site.node()), ['1', '2']);
        await site.logs.close();
        assert.deepEqual(await site.texts({}, site.node()), ['1', '2', '3']);
      });

      it('takes lines of many tasks and nodes at once, each in order', async () => {
        const nodes = [site.logs, site.node(), site.node()];
        for (let turn = 0; turn < 20; turn += 1) {
          for (const [index, logs] of nodes.entries()) {
            for (let task = 0; task < 40; task += 1) {
              logs.write(organizationId, `many${task}`, line(String(turn), { requestId: `node ${index}` }));
            }
          }
          await Promise.all(nodes.map((logs) => logs.flush()));
        }
        for (const task of [0, 17, 39]) {
          const { lines } = await site.logs.list(organizationId, `many${task}`, { limit: 1000 });
          assert.equal(lines.length, 60);
          for (const index of nodes.keys()) {
            const texts = lines
              .filter(({ requestId }) => requestId === `node ${index}`)
              .map(({ text }) => text);
            assert.deepEqual(texts, numbers(0, 19));
          }
        }
      });

      it('is gone once forgotten, also what was waiting, and begins anew', async () => {
        site.write('1', '2');
        const page = await site.logs.list(organizationId, taskId, { limit: 1 });
        site.write('3');
        const flushing = site.logs.flush();
        await site.logs.forget(organizationId, taskId);
        await flushing;
        assert.deepEqual(await site.texts(), []);
        assert.deepEqual(await site.database.query.selectFrom('task_log_chunks').selectAll().execute(), []);
        site.clock.advance(1);
        site.write('new');
        assert.deepEqual(await site.texts(), ['new']);
        assert.deepEqual(await site.texts({ after: page.next }), ['new']);
      });

      it('takes nothing more once closed', async () => {
        await site.logs.close();
        site.write('late');
        assert.deepEqual(await site.texts({}, site.node()), []);
      });
    });

    followingSuite(site);
  });
}

/** A database as an object whose parts can be replaced. */
function bound(database: Parameters<ReturnType<typeof logSite>['node']>[1] & object) {
  return {
    engine: database.engine,
    query: database.query,
    trustMilliseconds: database.trustMilliseconds,
    announce: (channel: string, payload: string) => database.announce(channel, payload),
    listen: (channel: string, hear: (payload: string) => void, missed?: () => void) =>
      database.listen(channel, hear, missed),
    check: () => database.check(),
    close: () => database.close(),
  };
}

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../database/database.ts';
import { organization } from '../database/rows.suite.ts';
import { type Addition, type Catalog, type NewFile, smallBytes, TableChangedError } from './catalog.ts';
import { databaseCatalog } from './catalog-store.ts';
import type { Column } from './columns.ts';
import { afterAll, keyRange } from './keys.ts';
import { newTable } from './table-store.ts';

export type OpenDatabase = () => Promise<{ database: Database; close(): Promise<void> }>;

const name = 'acme';
const at = Date.UTC(2026, 10, 15, 9);
const hourMilliseconds = 3_600_000;
const column = (id: number, columnName: string): Column => ({
  id,
  name: columnName,
  type: { kind: 'varchar' },
});

/** What the catalog must do on every engine of the database. */
export function catalogSuite(engine: string, open: OpenDatabase): void {
  describe(`the catalog on ${engine}`, { timeout: 120_000 }, () => {
    let database: Database;
    let close: () => Promise<void>;
    let catalog: Catalog;
    let organizationId = '';
    let count = 0;
    before(async () => {
      ({ database, close } = await open());
      catalog = databaseCatalog(database);
    });
    after(() => close());
    beforeEach(async () => {
      count += 1;
      organizationId = `o${count}`;
      await database.query.deleteFrom('lake_files').execute();
      await database.query
        .insertInto('organizations')
        .values({ ...organization(organizationId), name: `${name}${count}`, name_lower: `${name}${count}` })
        .execute();
    });

    const topic = () => ({ organizationId, topicName: 'clicks' });
    const keyOf = (place: number, hour = 9) =>
      `organization=${name}/topic=clicks/year=2026/month=11/day=15/hour=${String(hour).padStart(2, '0')}/f${String(place).padStart(7, '0')}.parquet`;
    const file = (place: number, more: Partial<NewFile> = {}): NewFile => ({
      key: keyOf(place),
      hour: at,
      rows: 10,
      bytes: 1000,
      rescued: 0,
      minIngestedAt: at,
      maxIngestedAt: at + 1,
      ...more,
    });
    const add = (addition: Partial<Addition> & { files: readonly NewFile[] }) =>
      database.transaction((transaction) =>
        catalog.addFiles(transaction, topic(), {
          base: newTable(topic()),
          columns: [column(16, 'a')],
          nextColumnId: 17,
          at,
          ...addition,
        }),
      );
    const keys = async () => (await catalog.snapshot(topic()))?.files.map(({ key }) => key);

    it('knows no table before there is one', async () => {
      assert.equal(await catalog.table(topic()), undefined);
      assert.equal(await catalog.snapshot(topic()), undefined);
      assert.deepEqual(await catalog.tables(organizationId), []);
      assert.equal(await catalog.schema(topic()), undefined);
    });

    it('gives back tables, files and layouts as they were written', async () => {
      await add({ files: [file(1), file(2)] });
      const base = await catalog.table(topic());
      assert.deepEqual(base, {
        ...newTable(topic()),
        version: 1,
        nextColumnId: 17,
        columns: [column(16, 'a')],
      });
      await add({ base, columns: [column(16, 'a'), column(17, 'b')], nextColumnId: 18, files: [file(3)] });
      const snapshot = await catalog.snapshot(topic());
      assert.equal(snapshot?.table.version, 2);
      assert.deepEqual(
        snapshot?.files.map((each) => [each.key, snapshot.layouts.get(each.layoutId)?.length]),
        [
          [keyOf(1), 1],
          [keyOf(2), 1],
          [keyOf(3), 2],
        ],
      );
      const { layoutId: _id, createdAt, ...rest } = snapshot?.files[0] ?? assert.fail();
      assert.deepEqual(rest, file(1));
      assert.equal(createdAt, at);
      assert.deepEqual(await catalog.file(topic(), keyOf(3)), snapshot?.files[2]);
      assert.equal(await catalog.file({ ...topic(), topicName: 'other' }, keyOf(3)), undefined);
    });

    it('refuses new columns that are based on a table which has changed', async () => {
      await add({ files: [file(1)] });
      const base = (await catalog.table(topic())) ?? assert.fail();
      await add({ base, columns: [column(16, 'a'), column(17, 'b')], nextColumnId: 18, files: [] });
      const late = { base, columns: [column(16, 'a'), column(17, 'c')], nextColumnId: 18, files: [file(2)] };
      await assert.rejects(add(late), TableChangedError);
      assert.deepEqual(await keys(), [keyOf(1)]);
      await add({ base, columns: base.columns, nextColumnId: 17, files: [file(2)] });
      assert.deepEqual(await keys(), [keyOf(1), keyOf(2)], 'files without new columns are always welcome');
      assert.equal((await catalog.table(topic()))?.columns.length, 2);
    });

    it('gives new columns to exactly one of many writers at a time, and loses none', async () => {
      const writers = Array.from({ length: 8 }, (_value, writer) => writer);
      await Promise.all(
        writers.map(async (writer) => {
          for (;;) {
            const base = (await catalog.table(topic())) ?? newTable(topic());
            const columns = [...base.columns, column(base.nextColumnId, `c${writer}`)];
            const addition = { base, columns, nextColumnId: base.nextColumnId + 1, files: [file(writer)] };
            try {
              return await add(addition);
            } catch (error) {
              if (!(error instanceof TableChangedError)) throw error;
            }
          }
        }),
      );
      const table = await catalog.table(topic());
      assert.deepEqual(
        table?.columns.map(({ id }) => id),
        writers.map((writer) => 16 + writer),
      );
      assert.equal((await keys())?.length, 8);
    });

    it('puts a merged file in the place of others once, and only while all of them are live', async () => {
      await add({ files: [file(1), file(2), file(3)] });
      const columns = [column(16, 'a')];
      const merge = (inputs: number[], output: number) =>
        catalog.replaceFiles(topic(), {
          inputs: inputs.map((place) => keyOf(place)),
          output: file(output),
          columns,
          at: at + 5,
        });
      const outcomes = await Promise.all([merge([1, 2], 10), merge([2, 3], 11)]);
      assert.equal(outcomes.filter((isDone) => isDone).length, 1);
      assert.equal(await merge([1, 2], 12), false);
      assert.equal((await keys())?.length, 2);
      const removed = await catalog.removedFiles(at + 6, 10);
      assert.equal(removed.length, 2);
      assert.deepEqual(await catalog.removedFiles(at + 5, 10), []);
      const known = await catalog.known(`${name}${count}`, 'clicks', [keyOf(1), keyOf(2), keyOf(99)]);
      assert.equal(known.size, 2, 'removed files are known as well');
      await catalog.forgetFiles([...removed, { ...topic(), key: keyOf(3) }]);
      assert.deepEqual(await catalog.removedFiles(at + 6, 10), []);
      assert.equal((await keys())?.length, 2, 'live ones are not forgotten');
    });

    it('removes what is old by the keys, or by when it was accepted', async () => {
      await add({
        files: [
          file(1, { key: keyOf(1, 7) }),
          file(2, { key: keyOf(2, 8) }),
          file(3, { maxIngestedAt: at + 100 }),
        ],
      });
      const below = `organization=${name}/topic=clicks/year=2026/month=11/day=15/hour=08/`;
      assert.equal(await catalog.removeFiles(topic(), { below, at }), 1);
      assert.deepEqual(await keys(), [keyOf(2, 8), keyOf(3)]);
      const all = afterAll(`organization=${name}/topic=clicks/`);
      assert.equal(await catalog.removeFiles(topic(), { below: all, acceptedBy: at + 99, at }), 1);
      assert.deepEqual(await keys(), [keyOf(3)]);
      assert.equal(await catalog.dropTable(topic()), false);
      assert.equal(await catalog.removeFiles(topic(), { below: all, at }), 1);
      await catalog.forgetFiles(await catalog.removedFiles(at + 1, 10));
      assert.equal(await catalog.dropTable(topic()), true);
      assert.equal(await catalog.table(topic()), undefined);
    });

    it('finds hours with several small files', async () => {
      await add({
        files: [file(1), file(2), file(3, { bytes: smallBytes }), file(4, { hour: at + hourMilliseconds })],
      });
      const span = { from: 0, below: at + hourMilliseconds, least: 2, limit: 10 };
      assert.deepEqual(await catalog.crowdedHours(span), [{ ...topic(), hour: at, files: 2 }]);
      assert.deepEqual(await catalog.crowdedHours({ ...span, below: at }), []);
      assert.deepEqual(await catalog.crowdedHours({ ...span, least: 3 }), []);
      const small = async () => (await catalog.smallFiles(topic(), at, 10)).map(({ key }) => key);
      assert.deepEqual(await small(), [keyOf(1), keyOf(2)]);
      await catalog.settleFiles(topic(), [keyOf(1)]);
      assert.deepEqual(await small(), [keyOf(2)]);
      assert.equal((await keys())?.length, 4);
    });

    it('keeps all versions of a schema, and changes a table once', async () => {
      const base = newTable(topic());
      const change = (text: string, on = base) =>
        catalog.changeTable(topic(), {
          base: on,
          columns: [column(16, text)],
          nextColumnId: 17,
          fixed: true,
          schema: { text, origin: 'uploaded' },
          at,
        });
      assert.equal(await change('one'), true);
      assert.equal(await change('two'), false);
      const table = (await catalog.table(topic())) ?? assert.fail();
      assert.equal(table.fixed, true);
      assert.equal(await change('three', table), true);
      assert.deepEqual(
        (await catalog.schemas(topic())).map(({ version, schema }) => [version, schema]),
        [
          [1, 'one'],
          [2, 'three'],
        ],
      );
      assert.equal((await catalog.schema(topic()))?.schema, 'three');
    });

    it('lists files by pages that cost the same however many there are', async () => {
      await add({ files: [] });
      const range = keyRange(name, 'clicks', 'year=2026/') ?? assert.fail();
      const timed = async (after: string) => {
        const times: number[] = [];
        for (let round = 0; round < 15; round += 1) {
          const began = performance.now();
          const page = await catalog.page(topic(), { ...range, after, limit: 100 });
          times.push(performance.now() - began);
          assert.equal(page.length, 100);
          assert.ok((page[0]?.key ?? '') > after);
        }
        return times.sort((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
      };
      await fill(database, organizationId, 10_000, 0);
      const few = await timed(keyOf(5_000));
      await fill(database, organizationId, 190_000, 10_000);
      if (database.engine === 'postgres') await sql`analyze lake_files`.execute(database.query);
      const many = await timed(keyOf(150_000));
      assert.ok(many < few * 4 + 10, `${few} ms of 10,000 files, ${many} ms of 200,000`);
      const query = database.query
        .selectFrom('lake_files')
        .select('key')
        .where('organization_id', '=', organizationId)
        .where('topic_name', '=', 'clicks')
        .where('removed_at', 'is', null)
        .where('key', '<', range.below)
        .where('key', '>', keyOf(150_000))
        .orderBy('key')
        .limit(100);
      const plan = await (database.engine === 'postgres'
        ? query.explain()
        : query.explain(undefined, sql`query plan`));
      const text = JSON.stringify(plan);
      assert.match(text, /lake_files_(live|key)/, 'the page is a range of an index');
      assert.doesNotMatch(
        text,
        /TEMP B-TREE|Sort|Seq Scan|SCAN lake_files/,
        'nothing is sorted or read in full',
      );
    });

    /** Many rows quickly: the way they come does not matter here. */
    async function fill(into: Database, id: string, rows: number, first: number): Promise<void> {
      const layout = 'l';
      for (let start = 0; start < rows; start += 500) {
        const values = Array.from({ length: Math.min(500, rows - start) }, (_value, index) => ({
          organization_id: id,
          topic_name: 'clicks',
          key: keyOf(first + start + index),
          hour: at,
          layout_id: layout,
          row_count: 1,
          bytes: smallBytes,
          rescued: 0,
          min_ingested_at: at,
          max_ingested_at: at,
          created_at: at,
          removed_at: null,
          small: 0 as const,
        }));
        await into.query.insertInto('lake_files').values(values).execute();
      }
    }
  });
}

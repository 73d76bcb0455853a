import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Kysely } from 'kysely';
import type { Database } from './database.ts';
import { isUniqueViolation } from './errors.ts';
import type { Schema } from './schema.ts';

/** What every engine must do with transactions. */
export function transactionSuite(open: () => Database): void {
  const insert = (query: Kysely<Schema>, name: string, created_at = 0) =>
    query.insertInto('secrets').values({ name, value: '', created_at }).execute();
  const names = async (query: Kysely<Schema>) =>
    (await query.selectFrom('secrets').select('name').orderBy('name').execute()).map((row) => row.name);

  test('a transaction gives its result and is there as a whole', async () => {
    const database = open();
    const result = await database.transaction(async (transaction) => {
      await insert(transaction, 'a');
      await insert(transaction, 'b');
      return names(transaction);
    });
    assert.deepEqual(result, ['a', 'b']);
    assert.deepEqual(await names(database.query), ['a', 'b']);
  });

  test('a transaction whose work throws leaves nothing', async () => {
    const database = open();
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'a');
      throw new Error('changed my mind');
    });
    await assert.rejects(work, /changed my mind/);
    assert.deepEqual(await names(database.query), []);
    await database.transaction((transaction) => insert(transaction, 'b'));
    assert.deepEqual(await names(database.query), ['b']);
  });

  test('a transaction in which a query failed cannot be committed', async () => {
    const database = open();
    await insert(database.query, 'taken');
    const swallowed = database.transaction(async (transaction) => {
      await insert(transaction, 'a');
      await assert.rejects(insert(transaction, 'taken'), isUniqueViolation);
      await assert.rejects(insert(transaction, 'b'));
    });
    await assert.rejects(swallowed);
    assert.deepEqual(await names(database.query), ['taken']);
  });

  test('queries that were waiting behind a failed one of their transaction are not carried out', async () => {
    const database = open();
    await insert(database.query, 'taken');
    for (let round = 0; round < 20; round++) {
      const work = database.transaction((transaction) =>
        Promise.all(['a', 'taken', 'b', 'c', 'd', 'e'].map((name) => insert(transaction, name))),
      );
      await assert.rejects(work, isUniqueViolation);
    }
    await database.transaction(async () => {});
    assert.deepEqual(await names(database.query), ['taken']);
  });

  test('what a transaction has changed is not seen before it commits', async () => {
    const database = open();
    const inside = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'a');
      inside.resolve();
      await mayCommit.promise;
    });
    await inside.promise;
    assert.deepEqual(await names(database.query), []);
    mayCommit.resolve();
    await work;
    assert.deepEqual(await names(database.query), ['a']);
  });

  test('a write beside an open transaction is not part of it', async () => {
    const database = open();
    const inside = Promise.withResolvers<void>();
    const mayFail = Promise.withResolvers<void>();
    const work = database.transaction(async (transaction) => {
      await insert(transaction, 'inside');
      inside.resolve();
      await mayFail.promise;
      throw new Error('rolled back');
    });
    await inside.promise;
    const beside = Promise.all([insert(database.query, 'beside 1'), insert(database.query, 'beside 2')]);
    const later = database.transaction((transaction) => insert(transaction, 'later'));
    await names(database.query);
    mayFail.resolve();
    await assert.rejects(work, /rolled back/);
    await Promise.all([beside, later]);
    assert.deepEqual(await names(database.query), ['beside 1', 'beside 2', 'later']);
  });

  test('fifty parallel transactions that increment one counter all count', async () => {
    const database = open();
    await insert(database.query, 'counter');
    await Promise.all(
      Array.from({ length: 50 }, () =>
        database.transaction(async (transaction) => {
          const row = await transaction
            .selectFrom('secrets')
            .select('created_at')
            .where('name', '=', 'counter')
            .executeTakeFirstOrThrow();
          await transaction
            .updateTable('secrets')
            .set({ created_at: row.created_at + 1 })
            .where('name', '=', 'counter')
            .execute();
        }),
      ),
    );
    const row = await database.query.selectFrom('secrets').select('created_at').executeTakeFirst();
    assert.equal(row?.created_at, 50);
  });

  test('two transactions cannot both act on a state that the other changes', async () => {
    const database = open();
    // Each may add itself only while nobody is there: only serializable transactions keep it to one.
    await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) =>
        database.transaction(async (transaction) => {
          if ((await names(transaction)).length === 0) await insert(transaction, name);
        }),
      ),
    );
    assert.equal((await names(database.query)).length, 1);
  });
}

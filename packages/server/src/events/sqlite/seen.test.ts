import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, test } from 'node:test';
import { prepareSchema } from './schema.ts';
import { SeenIds } from './seen.ts';

const minute = 60_000;
const windowMilliseconds = 10 * minute;

describe('the ids that were seen', () => {
  let database: DatabaseSync;
  let seen: SeenIds;
  let now: number;
  const open = (memoryIds = 1_000_000) => new SeenIds(database, { windowMilliseconds, memoryIds });

  beforeEach(() => {
    database = new DatabaseSync(':memory:');
    prepareSchema(database);
    now = 1_700_000_000_000;
    seen = open();
  });

  /** Adds ids in a transaction and says which of them are new. */
  function add(ids: readonly string[], end: 'commit' | 'rollback' = 'commit'): boolean[] {
    database.exec('begin');
    seen.turnTo(now);
    const added = ids.map((id) => seen.add(1, Buffer.from(id), 0, Buffer.byteLength(id)));
    seen.store();
    database.exec(end);
    if (end === 'commit') seen.committed();
    else seen.rolledBack();
    return added;
  }

  /** Tidies until there is nothing to tidy, and says how many steps that took. */
  function tidy(end: 'commit' | 'rollback' = 'commit'): number {
    let steps = 0;
    for (; !seen.isTidy(now) && steps < 1_000; steps += 1) {
      database.exec('begin');
      seen.tidy(now);
      database.exec(end);
      if (end === 'commit') seen.committed();
      else seen.rolledBack();
      if (end === 'rollback') return steps;
    }
    return steps;
  }

  const rows = (table: string) => Number(database.prepare(`select count(*) as n from ${table}`).get()?.n);
  const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);
  const isNew = (id: string) => {
    const [result] = add([id], 'rollback');
    return result;
  };

  test('are known until the window has passed and not much longer', () => {
    add(['a']);
    for (let passed = 0; passed < 10; passed += 1) {
      assert.equal(isNew('a'), false, `after ${passed} minutes`);
      now += minute;
    }
    now += 3 * minute;
    assert.equal(isNew('a'), true);
  });

  test('are known again after a start', () => {
    add(['a', 'b']);
    now += 3 * minute;
    add(['c']);
    seen = open();
    assert.deepEqual(add(['a', 'b', 'c', 'd']), [false, false, false, true]);
    now += 9 * minute;
    assert.deepEqual([isNew('a'), isNew('c')], [true, false]);
  });

  test('that were not committed are unknown', () => {
    assert.deepEqual(add(['a', 'a'], 'rollback'), [true, false]);
    assert.deepEqual(add(['a']), [true]);
  });

  test('move to the table when memory has too many, and stay known before, while and after', () => {
    seen = open(1_000);
    for (const [index, prefix] of ['p', 'q', 'r', 's'].entries()) {
      assert.ok(add(ids(prefix, 700)).every(Boolean));
      if (index === 1) tidy('rollback');
      now += 3 * minute;
    }
    const known = () => ['q0', 'q699', 'r350', 's0'].every((id) => isNew(id) === false);
    assert.ok(known());
    assert.ok(tidy() > 0);
    assert.ok(rows('seen') >= 1_400, `${rows('seen')} rows in the table`);
    assert.ok(known());
    seen = open(1_000);
    assert.ok(known());
    assert.ok(ids('q', 700).every((id) => isNew(id) === false));
  });

  test('move to the table also when nobody finds time to tidy', () => {
    seen = open(100);
    for (let round = 0; round < 40; round += 1) {
      now += minute / 2;
      assert.ok(add(ids(`${round}/`, 200)).every(Boolean));
    }
    assert.ok(rows('seen') >= 200, `${rows('seen')} rows in the table`);
    for (let round = 25; round < 40; round += 1) assert.equal(isNew(`${round}/7`), false);
  });

  test('leave nothing behind when they are out of date', () => {
    seen = open(1_000);
    for (const prefix of ['p', 'q', 'r']) {
      add(ids(prefix, 3_000));
      now += 3 * minute;
      tidy();
    }
    now += 60 * minute;
    assert.ok(tidy() > 1, 'in several steps');
    assert.deepEqual([rows('seen'), rows('seen_recent')], [0, 0]);
    assert.equal(isNew('p0'), true);
  });

  test('from a clock that was wrong do not stay for ever', () => {
    const right = now;
    now += 365 * 24 * 60 * minute;
    add(['future']);
    now = right;
    assert.deepEqual(add(['future', 'past']), [true, true]);
    tidy();
    assert.deepEqual(add(['past', 'future']), [false, false]);
  });

  test('belong to a topic', () => {
    add(['a']);
    database.exec('begin');
    seen.turnTo(now);
    assert.equal(seen.add(2, Buffer.from('a'), 0, 1), true);
    assert.equal(seen.add(1, Buffer.from('a'), 0, 1), false);
    database.exec('commit');
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, open as openFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { adjustableClock } from '../../platform/clock.ts';
import { addressOf, entry, eventually, newTopic, offsetsOf, readAll } from '../entries.suite.ts';
import { type EventLog, EventLogUnavailableError } from '../events.ts';
import { openSqliteEventLog } from './sqlite-event-log.ts';

describe('the file of the SQLite event log', { timeout: 60_000 }, () => {
  let directory: string;
  let path: string;
  let log: EventLog;
  const clock = adjustableClock(1_700_000_000_000);
  const faults: Error[] = [];
  const topic = newTopic();
  const address = addressOf(entry(topic));

  const open = () => openSqliteEventLog({ directory, clock, onFatal: (error) => faults.push(error) });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-events-file-'));
    path = join(directory, 'events.db');
    faults.length = 0;
    log = await open();
  });
  afterEach(async () => {
    await log.close();
    await rm(directory, { recursive: true });
  });

  /** Looks into the file beside the log. */
  function ask(sql: string): number {
    const database = new DatabaseSync(path, { readOnly: true });
    const answer = Number(database.prepare(`select (${sql}) as answer`).get()?.answer);
    database.close();
    return answer;
  }

  test('has one row for what many callers appended to a partition in one commit', async () => {
    const calls = Array.from({ length: 1_000 }, () => [entry(topic)]);
    await Promise.all(calls.map((call) => offsetsOf(log, call)));
    assert.ok(ask('select count(*) from chunks') < 20);
    assert.equal(ask('select sum(count) from chunks'), 1_000);
  });

  test('has large calls in several rows, which are read as one', async () => {
    const bodies = Array.from({ length: 40 }, (_, index) => Buffer.alloc(50_000, index));
    await offsetsOf(
      log,
      bodies.map((body) => entry(topic, { body })),
    );
    assert.ok(ask('select count(*) from chunks') >= 8);
    const records = await log.read(address, 0, { records: 100, bytes: 10_000_000 });
    assert.deepEqual(
      records.map((record) => Buffer.compare(record.body, bodies[record.offset - 1] ?? Buffer.alloc(0))),
      bodies.map(() => 0),
    );
  });

  test('lets go of what was trimmed, also while others append', async () => {
    for (let round = 0; round < 300; round += 1) await offsetsOf(log, [entry(topic), entry(topic)]);
    const through = 501;
    await log.trim(address, through);
    await Promise.all(Array.from({ length: 20 }, () => offsetsOf(log, [entry(topic)])));
    const left = () => ask(`select count(*) from chunks where last_offset <= ${through}`);
    await eventually(() => left() === 0, 'the trimmed rows to go');
    const [first] = await readAll(log, address);
    assert.equal(first?.offset, through + 1);
  });

  test('forgets ids that are out of date without being asked to', async () => {
    await offsetsOf(log, [entry(topic, { deduplicate: true })]);
    assert.equal(ask('select count(*) from seen_recent'), 1);
    clock.advance(60 * 60_000);
    await offsetsOf(log, [entry(topic)]);
    await eventually(() => ask('select count(*) from seen_recent') === 0, 'the ids to go');
  });

  test('gives the offset at a time exactly where calls end', async () => {
    const start = clock.now();
    for (let index = 0; index < 50; index += 1) {
      await offsetsOf(log, [entry(topic, { acceptedAt: start + index * 10 })]);
    }
    await log.trim(address, 10);
    assert.equal(await log.offsetAt(address, start + 5 * 10), 0);
    assert.equal(await log.offsetAt(address, start + 30 * 10), 31);
    assert.equal(await log.offsetAt(address, start + 30 * 10 + 9), 31);
    assert.equal(await log.offsetAt(address, start + 1_000_000), 50);
  });

  test('of a newer format is refused by name', async () => {
    await log.close();
    const database = new DatabaseSync(path);
    database.exec('pragma user_version = 99');
    database.close();
    await assert.rejects(open(), /newer version: its format is 99/);
  });

  test('in a directory that is missing is a clear error', async () => {
    const missing = { directory: join(directory, 'missing'), clock, onFatal: assert.ifError };
    await assert.rejects(openSqliteEventLog(missing), /unable to open/);
  });

  test('that is damaged under the log ends it, and nothing is acknowledged after', async () => {
    await offsetsOf(log, [entry(topic)]);
    await log.close();
    const page = ask("select rootpage from sqlite_schema where name = 'chunk_positions'");
    const file = await openFile(path, 'r+');
    await file.write(Buffer.alloc(8_192, 0x5a), 0, undefined, (page - 1) * 8_192);
    await file.close();
    log = await open();
    await assert.rejects(log.append([entry(topic)]), EventLogUnavailableError);
    assert.equal(faults.length, 1);
    await assert.rejects(log.append([entry(topic)]), EventLogUnavailableError);
    await assert.rejects(log.check(), EventLogUnavailableError);
  });
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import { openSqliteDatabase } from './sqlite-database.ts';

const fixture = join(import.meta.dirname, 'writer.fixture.ts');

describe('what SQLite has acknowledged', { timeout: 60_000 }, () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-durability-'));
    path = join(directory, 'millrace.db');
  });
  afterEach(() => rm(directory, { recursive: true }));

  /** Asserts that every acknowledged number is there, and every number there as a whole. */
  async function assertKept(acknowledged: readonly number[]): Promise<void> {
    const database = await openSqliteDatabase({ path, clock: systemClock, onFatal: assert.ifError });
    const rows = await database.query.selectFrom('secrets').select('created_at').execute();
    await database.close();
    const halves = new Map<number, number>();
    for (const { created_at } of rows) halves.set(created_at, (halves.get(created_at) ?? 0) + 1);
    for (const number of acknowledged) assert.equal(halves.get(number), 2, `number ${number} was lost`);
    for (const [number, count] of halves) assert.equal(count, 2, `number ${number} is there by half`);
  }

  test('survives kill -9 in the middle of writing, three times over', async () => {
    const acknowledged: number[] = [];
    for (let round = 1; round <= 3; round++) {
      const writer = spawn(process.execPath, [fixture, path, String(round * 1_000_000)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exited = once(writer, 'exit');
      for await (const line of createInterface(writer.stdout)) {
        const number = /^acknowledged (\d+)$/.exec(line)?.[1];
        if (number !== undefined) acknowledged.push(Number(number));
        if (acknowledged.length >= round * 100 || line.startsWith('failed')) writer.kill('SIGKILL');
      }
      await exited;
      assert.ok(acknowledged.length >= round * 100);
      await assertKept(acknowledged);
    }
  });

  test('is all there after the disk failed, and nothing is acknowledged after that', async () => {
    // A limit on the size of files makes the system call fail as a broken disk would.
    const command = 'ulimit -f 2000; exec "$0" "$@"';
    const writer = spawn('/bin/sh', ['-c', command, process.execPath, fixture, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(writer, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface(writer.stdout)) lines.push(line);
    const [code] = await exited;
    assert.equal(code, 70, 'the process was told to end');
    const fault = lines.indexOf('fatal DatabaseUnavailableError');
    assert.ok(fault > 10, lines.slice(-5).join('\n'));
    assert.ok(!lines.slice(fault).some((line) => line.startsWith('acknowledged')));
    await assertKept(
      lines.flatMap((line) => (line.startsWith('acknowledged ') ? [Number(line.slice(13))] : [])),
    );
  });
});

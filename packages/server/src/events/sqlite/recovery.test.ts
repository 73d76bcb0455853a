import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import { readTopic } from '../entries.suite.ts';
import { openSqliteEventLog } from './sqlite-event-log.ts';

const fixture = join(import.meta.dirname, 'appender.fixture.ts');
const topic = { organizationId: 'organization', topicName: 'crashes' };
const withoutStrace = straceProblem();

function straceProblem(): string | undefined {
  const tried = spawnSync('strace', ['-f', '-e', 'trace=none', process.execPath, '-e', '0']);
  if (tried.error) return 'strace is not installed';
  return tried.status === 0 ? undefined : `strace may not be used here: ${tried.stderr}`;
}

describe('what the SQLite event log has acknowledged', { timeout: 180_000 }, () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'millrace-recovery-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  /** Runs the appender, through strace when arguments for that are given, and hears its lines. */
  async function run(
    args: readonly string[],
    hear: (line: string, appender: ChildProcess) => void,
    strace?: readonly string[],
  ): Promise<number | null> {
    const command = [process.execPath, fixture, directory, ...args];
    if (strace) command.unshift('strace', '-f', '-q', ...strace);
    const [program = '', ...rest] = command;
    const appender = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    const exited = once(appender, 'exit');
    for await (const line of createInterface(appender.stdout)) hear(line, appender);
    const [code] = await exited;
    return code;
  }

  /** The whole group, as strace does not pass a kill on. */
  function kill(appender: ChildProcess): void {
    if (appender.pid !== undefined && appender.exitCode === null) process.kill(-appender.pid, 'SIGKILL');
  }

  const callsIn = (lines: readonly string[], what: string) =>
    lines.filter((line) => line.startsWith(`${what} `)).map((line) => line.slice(what.length + 1));

  /** The calls of which records are there, in order; fails when one is there in part, twice or late. */
  async function storedCalls(): Promise<Set<string>> {
    const log = await openSqliteEventLog({ directory, clock: systemClock, onFatal: assert.ifError });
    const byKey = Map.groupBy(await readTopic(log, topic), (record) => record.key);
    await log.close();
    const calls = new Set<string>();
    for (const [key, records] of byKey) {
      let last = -1;
      for (let index = 0; index < records.length; index += 3) {
        const call = Number(records[index]?.id.split('/')[2]?.slice(0, -1));
        assert.ok(call > last, `call ${call} of ${key} comes after ${last}`);
        last = call;
        const parts = records.slice(index, index + 3).map((record) => record.id);
        assert.deepEqual(
          parts,
          ['a', 'b', 'c'].map((part) => `${key}/${call}${part}`),
        );
        calls.add(`${key}/${call}`);
      }
    }
    return calls;
  }

  async function assertKept(lines: readonly string[]): Promise<void> {
    const stored = await storedCalls();
    for (const call of callsIn(lines, 'acknowledged')) assert.ok(stored.has(call), `${call} was lost`);
    const asked = new Set(callsIn(lines, 'asked'));
    for (const call of stored) assert.ok(asked.has(call), `${call} was never asked for`);
  }

  test('is there once and in order after kill -9 at any moment, twenty times over', async () => {
    const lines: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      const enough = Math.floor(Math.random() * 300) + 1;
      let acknowledged = 0;
      await run([String(round)], (line, appender) => {
        lines.push(line);
        if (line.startsWith('acknowledged')) acknowledged += 1;
        if (acknowledged === enough) kill(appender);
      });
      assert.ok(acknowledged >= enough, `round ${round} ended after ${acknowledged}: ${lines.at(-1)}`);
      await assertKept(lines);
    }
  });

  test('is all there when the end of the write-ahead log was torn', async () => {
    const lines: string[] = [];
    let sizeThen = 0;
    let after = 0;
    const wal = join(directory, 'events.db-wal');
    const sizes: Promise<void>[] = [];
    await run(['0', '1'], (line, appender) => {
      if (sizes.length === 0) lines.push(line);
      if (callsIn(lines, 'acknowledged').length === 40 && sizes.length === 0) {
        // What is acknowledged by now is within the size that is found; what comes after may be torn.
        sizes.push(
          stat(wal).then(({ size }) => {
            sizeThen = size;
          }),
        );
      }
      if (sizeThen > 0 && line.startsWith('acknowledged')) after += 1;
      // Some that were written before the size was taken may be told only now.
      if (after === 30) kill(appender);
    });
    await Promise.all(sizes);
    const { size } = await stat(wal);
    assert.ok(size > sizeThen, 'something was written after');
    const file = await open(wal, 'r+');
    await file.truncate(sizeThen + Math.ceil((size - sizeThen) / 2));
    await file.write(
      Buffer.alloc(Math.min(500, Math.ceil((size - sizeThen) / 2)), 0xff),
      0,
      undefined,
      sizeThen,
    );
    await file.close();
    const stored = await storedCalls();
    for (const call of callsIn(lines, 'acknowledged')) assert.ok(stored.has(call), `${call} was lost`);
  });

  test('is all there when a sync fails, and nothing is acknowledged after that', {
    skip: withoutStrace,
  }, async () => {
    for (const when of [12, 25]) {
      const lines: string[] = [];
      const code = await run([String(when)], (line) => lines.push(line), [
        '-e',
        'trace=fsync,fdatasync',
        '-e',
        `inject=fsync,fdatasync:error=EIO:when=${when}`,
        '-o',
        '/dev/null',
      ]);
      const fault = lines.findIndex((line) => line.startsWith('fatal'));
      assert.ok(fault > 0, lines.slice(-5).join('\n'));
      assert.equal(code, 70, 'the process was told to end');
      assert.ok(callsIn(lines, 'acknowledged').length > 0);
      assert.deepEqual(callsIn(lines.slice(fault), 'acknowledged'), []);
      const stored = await storedCalls();
      for (const call of callsIn(lines, 'acknowledged')) assert.ok(stored.has(call), `${call} was lost`);
    }
  });

  test('is all there when the disk is full, and appending goes on when there is room', {
    skip: withoutStrace,
  }, async () => {
    const lines: string[] = [];
    let after = 0;
    await run(
      ['0'],
      (line, appender) => {
        lines.push(line);
        if (line.startsWith('acknowledged') && callsIn(lines, 'refused').length > 0) after += 1;
        if (after === 50) kill(appender);
      },
      ['-e', 'trace=pwrite64', '-e', 'inject=pwrite64:error=ENOSPC:when=150..170', '-o', '/dev/null'],
    );
    assert.deepEqual(callsIn(lines, 'fatal'), []);
    const refused = callsIn(lines, 'refused');
    assert.ok(refused.length > 0 && after >= 50);
    await assertKept(lines);
    const stored = await storedCalls();
    for (const call of refused) assert.ok(!stored.has(call), `${call} was refused and is there`);
  });

  test('was synced before it was acknowledged', { skip: withoutStrace }, async () => {
    const trace = join(directory, 'trace');
    let acknowledged = 0;
    await run(
      ['0', '1'],
      (line, appender) => {
        if (line.startsWith('acknowledged')) acknowledged += 1;
        if (acknowledged === 30) kill(appender);
      },
      ['-y', '-e', 'trace=pwrite64,fsync,fdatasync,write', '-o', trace],
    );
    const steps = (await readFile(trace, 'utf8')).split('\n').flatMap((line) => {
      if (/write\(1<.*"asked/.test(line)) return ['asked'];
      if (/write\(1<.*"acknowledged/.test(line)) return ['acknowledged'];
      if (/pwrite64\(.*events\.db-wal/.test(line)) return ['written'];
      if (/f(data)?sync\(\d+<.*events\.db-wal>\) += 0/.test(line)) return ['synced'];
      if (/<\.\.\. f(data)?sync resumed>\) += 0/.test(line)) return ['synced'];
      return [];
    });
    const calls = steps.join(' ').split('asked ').slice(1);
    const answered = calls.filter((call) => call.includes('acknowledged'));
    assert.ok(answered.length >= 30);
    for (const call of answered) assert.match(call, /^(written )+(synced )+.*acknowledged/);
  });
});

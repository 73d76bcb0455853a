import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test';
import { launch, type RunningService, startService, within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { Ledger } from './ledger.ts';
import { logSize, loseUnsynced } from './lost-writes.ts';
import { publish } from './publisher.ts';
import { seededRandom } from './random.ts';
import { readLog } from './read-log.ts';
import { newPublishing, newWriters, type Publishing } from './site.ts';
import { type Trace, type TraceOptions, trace, whyNoStrace } from './strace.ts';
import { isAnswer, isOn, isSync, type SystemCall } from './system-calls.ts';
import type { Writer } from './writer.ts';

const endMilliseconds = 10_000;
const writerCount = 4;
/** The process is killed where it enters the sync, which therefore never happens. */
const killed = 'fdatasync,fsync:error=EIO:signal=SIGKILL';
const wal = 'events.db-wal';
const accepted = { kind: 'acknowledged', accepted: 1, duplicates: 0 } as const;

function isSyncOfLog(call: SystemCall): boolean {
  return isSync(call) && isOn(call, wal);
}

describe('when a sync of the disk', { timeout: 180_000 }, () => {
  let dataDirectory: string;
  let service: RunningService;
  let publishing: Publishing;
  const traces: Trace[] = [];

  beforeEach(async () => {
    dataDirectory = await mkdtemp(join(tmpdir(), 'millrace-sync-'));
    service = await startService({ dataDirectory });
    publishing = await newPublishing(service);
  });
  afterEach(async () => {
    await service.remove();
    for (const tracing of traces.splice(0)) await tracing.remove();
    await rm(dataDirectory, { recursive: true, force: true });
  });

  /** Puts strace between a process and the disk; undefined, and the test is skipped, where that cannot be. */
  async function interfere(
    context: TestContext,
    pid: number | undefined,
    options: TraceOptions,
  ): Promise<Trace | undefined> {
    const reason = await whyNoStrace();
    const tracing = reason === undefined ? await trace(pid ?? 0, options) : { refusal: reason };
    if ('refusal' in tracing) {
      context.skip(tracing.refusal);
      return undefined;
    }
    traces.push(tracing);
    return tracing;
  }

  for (const failing of [1, 2, 25]) {
    it(`fails, the ${failing}. one, nothing more is acknowledged and the process ends`, async (context) => {
      const { writers, ledger } = newWriters(writerCount, seededRandom(failing), { mostFilling: 300 });
      const syncedBefore = await logSize(dataDirectory);
      const calls = await failSyncs(context, writers, `when=${failing}+`);
      if (calls === undefined) return;
      const before = ledger.acknowledged();
      assert.deepEqual(ledger.violations(await unpowered(calls, syncedBefore)), []);
      await goOn(writers);
      assert.deepEqual(ledger.violations(await readLog(dataDirectory)), []);
      context.diagnostic(`${before.length} acknowledged before, ${ledger.acknowledged().length} in the end`);
    });
  }

  it('fails once and then seems to work, as Linux has it, the process ends all the same', async (context) => {
    const { writers, ledger } = newWriters(writerCount, seededRandom(5), { mostFilling: 300 });
    const calls = await failSyncs(context, writers, 'when=12');
    if (calls === undefined) return;
    await goOn(writers);
    assert.deepEqual(ledger.violations(await readLog(dataDirectory)), []);
  });

  it('only pretends to have happened, what was acknowledged before is there all the same', async (context) => {
    const { writers, ledger } = newWriters(writerCount, seededRandom(9), { mostFilling: 300 });
    const account = { ...publishing, url: service.url };
    for (let requests = 0; requests < 10; requests += 1) {
      await Promise.all(writers.map((writer) => writer.writeOnce(account)));
    }
    const before = new Set(ledger.acknowledged());
    const syncedBefore = await logSize(dataDirectory);
    const tracing = await interfere(context, service.process.pid, { inject: 'fdatasync,fsync:retval=0' });
    if (tracing === undefined) return;
    for (let requests = 0; requests < 5; requests += 1) {
      await Promise.all(writers.map((writer) => writer.writeOnce(account)));
    }
    await service.kill();
    await tracing.ended();
    const calls = await tracing.calls();
    assert.ok(calls.some((call) => isSyncOfLog(call) && call.injected));
    const kept = new Set((await unpowered(calls, syncedBefore)).map(({ id }) => id));
    assert.deepEqual([...before.difference(kept)], [], 'nothing from before the lie is lost');
    const lied = new Set(ledger.acknowledged()).difference(before);
    assert.equal(kept.intersection(lied).size, 0, 'without a sync nothing is there for certain');
  });

  it('never returned, a message is not called a duplicate before it is on the disk', async (context) => {
    const ledger = new Ledger();
    const message = { id: 'never-synced', key: 'a key', sequence: 1, filling: 10 };
    const request = { form: 'message', topicName: 'orders', messages: [message] } as const;
    const account = { ...publishing, url: service.url };
    // The first use of a key is noted in the other database, whose sync is not the one to be killed at.
    const first = { ...message, id: 'first', key: 'another key' };
    assert.equal((await publish(account, { ...request, messages: [first] })).kind, 'acknowledged');
    ledger.note({ ...request, messages: [first] }, Date.now(), accepted);
    const tracing = await interfere(context, service.process.pid, { inject: killed });
    if (tracing === undefined) return;
    const startedAt = Date.now();
    const answered = await publish(account, request);
    assert.equal(answered.kind, 'unknown', 'it was not acknowledged without a sync');
    await tracing.ended();
    const isWritten = (await tracing.calls()).some((call) => call.name === 'pwrite64' && isOn(call, wal));
    assert.ok(isWritten, 'it was written, and not synced');
    ledger.note(request, startedAt, answered);

    const restarted = launch({ MILLRACE_DATA_DIR: dataDirectory, MILLRACE_PORT: '0' });
    try {
      // It is stopped until it is watched, so that nothing of its start is missed.
      restarted.child.kill('SIGSTOP');
      const watching = await interfere(context, restarted.child.pid, {});
      restarted.child.kill('SIGCONT');
      if (watching === undefined) return;
      const url = await eventually('the service is ready', endMilliseconds, () => {
        return /^millrace ready on (\S+)$/m.exec(restarted.output().stdout)?.[1];
      });
      const againAt = Date.now();
      const again = await publish({ ...publishing, url }, request);
      assert.equal(again.kind, 'acknowledged');
      ledger.note(request, againAt, again);
      context.diagnostic(`after the restart: ${JSON.stringify(again)}`);
      const calls = await eventually('the answer is recorded', endMilliseconds, async () => {
        const recorded = await watching.calls();
        return recorded.some((call) => isAnswer(call, message.id)) ? recorded : undefined;
      });
      const answer = calls.find((call) => isAnswer(call, message.id));
      const syncs = calls.filter((call) => isSync(call) && (isOn(call, wal) || isOn(call, 'events.db')));
      assert.ok(
        syncs.some((call) => call.result === 0 && call.endedAt <= (answer?.startedAt ?? 0)),
        'the log was synced before the message was acknowledged',
      );
    } finally {
      restarted.child.kill('SIGKILL');
      await within(restarted.exited, endMilliseconds, 'the service did not end');
    }
    assert.deepEqual(ledger.violations(await readLog(dataDirectory)), []);
  });

  /** Writes until a sync fails and the process has ended by itself, and answers what it did. */
  async function failSyncs(
    context: TestContext,
    writers: readonly Writer[],
    when: string,
  ): Promise<SystemCall[] | undefined> {
    const inject = `fdatasync,fsync:error=EIO:${when}`;
    const tracing = await interfere(context, service.process.pid, { inject });
    if (tracing === undefined) return undefined;
    const account = { ...publishing, url: service.url };
    const exited = new Promise<number | null>((resolve) => service.process.once('exit', resolve));
    const end = performance.now() + endMilliseconds;
    const isOver = () => performance.now() > end;
    await Promise.all(writers.map((writer) => writer.write(account, { isOver })));
    const code = await within(exited, endMilliseconds, 'the process did not end by itself');
    assert.equal(code, 1, 'it ended by itself and says that something is wrong');
    await tracing.ended();
    const calls = await tracing.calls();
    const failed = calls.findIndex((call) => isSync(call) && call.result === -1);
    const over = calls.findIndex((call) => call.name === 'write' && call.arguments.includes('service.fatal'));
    assert.ok(failed >= 0 && over > failed, 'a sync failed, and that is the end');
    // The other database has a thread of its own: one of the two fails first.
    const ofLog = calls.slice(0, over).filter(isSyncOfLog);
    const failedOfLog = ofLog.findIndex((call) => call.result === -1);
    const again = failedOfLog < 0 ? [] : ofLog.slice(failedOfLog + 1);
    assert.deepEqual(again, [], 'the sync is not tried again');
    const answers = calls.slice(over).filter((call) => isAnswer(call, ''));
    assert.deepEqual(answers, [], 'nothing is acknowledged after the end');
    const took = (calls[over]?.endedAt ?? 0) - (calls[failed]?.endedAt ?? 0);
    context.diagnostic(`${Math.round(took * 1000)} ms from the failed sync to the end`);
    return calls;
  }

  /** What would be in the log if the power had failed with the process. */
  async function unpowered(calls: readonly SystemCall[], syncedBefore: number) {
    await loseUnsynced(dataDirectory, calls, syncedBefore);
    return readLog(dataDirectory);
  }

  /** As after any crash the service goes on, and the writers that had no answer find out. */
  async function goOn(writers: readonly Writer[]): Promise<void> {
    service = await startService({ dataDirectory });
    const account = { ...publishing, url: service.url };
    for (let requests = 0; requests < 3; requests += 1) {
      await Promise.all(writers.map((writer) => writer.writeOnce(account)));
    }
    assert.equal(await service.stop(), 0);
  }
});

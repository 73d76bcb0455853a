import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { publish } from './crash/publisher.ts';
import { newPublishing, type Publishing } from './crash/site.ts';
import { trace, whyNoStrace } from './crash/strace.ts';
import { isAnswer, isOn, isSync, type SystemCall } from './crash/system-calls.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

const recordMilliseconds = 10_000;
const wal = 'events.db-wal';

describe('an acknowledgement', { timeout: 120_000 }, () => {
  let service: RunningService;
  let publishing: Publishing;
  before(async () => {
    service = await startService();
    publishing = await newPublishing(service);
  });
  after(() => service?.remove());

  for (const form of ['message', 'lines'] as const) {
    it(`of ${form === 'message' ? 'one message' : 'many messages'} is written after the sync of the log has returned`, async (context) => {
      const reason = await whyNoStrace();
      if (reason !== undefined) return context.skip(reason);
      const tracing = await trace(service.process.pid ?? 0);
      if ('refusal' in tracing) return context.skip(tracing.refusal);
      try {
        const id = `traced-${form}`;
        const messages = [{ id, key: 'a key', sequence: 1, filling: 100 }];
        const request = { form, topicName: 'orders', messages };
        const answered = await publish({ ...publishing, url: service.url }, request);
        assert.deepEqual(answered, { kind: 'acknowledged', accepted: 1, duplicates: 0 });
        const said = form === 'message' ? id : '"accepted":1';
        const calls = await eventually('the answer is recorded', recordMilliseconds, async () => {
          const recorded = await tracing.calls();
          return recorded.some((call) => isAnswer(call, said)) ? recorded : undefined;
        });
        assertSyncedFirst(calls, id, said);
      } finally {
        await tracing.remove();
      }
    });
  }
});

/** The record is written to the log, then the log is synced, and only then the answer leaves. */
function assertSyncedFirst(calls: readonly SystemCall[], id: string, said: string): void {
  const written = calls.filter((call) => call.name === 'pwrite64' && isOn(call, wal));
  const record = written.find((call) => call.arguments.includes(id));
  assert.ok(record, 'the message is written to the log');
  const answer = calls.find((call) => isAnswer(call, said));
  assert.ok(answer, 'the answer is written');
  const before = written.filter((call) => call.startedAt < answer.startedAt);
  const lastWritten = Math.max(...before.map((call) => call.endedAt));
  const sync = calls.find((call) => isSync(call) && isOn(call, wal) && call.startedAt >= lastWritten);
  assert.ok(sync, 'the log is synced after the last of it was written');
  assert.equal(sync.result, 0);
  assert.ok(sync.startedAt >= record.endedAt, 'the sync begins when the message is written');
  assert.ok(
    sync.endedAt <= answer.startedAt,
    `the sync returned at ${sync.endedAt} and the answer was written at ${answer.startedAt}`,
  );
}

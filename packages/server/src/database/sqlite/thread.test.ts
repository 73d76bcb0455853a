import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DatabaseUnavailableError } from '../errors.ts';
import type { Request } from './protocol.ts';
import { SqliteThread } from './thread.ts';

/** A thread that opens and then does as the script says with each message. */
function thread(script: string): URL {
  const source = `import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (message) => {
      if (message.kind === 'open') parentPort.postMessage({ kind: 'opened' });
      else { ${script} }
    });`;
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
}

describe('a thread that holds a connection', { timeout: 10_000 }, () => {
  const query: Request = { kind: 'read', sql: 'select 1', parameters: [] };
  const options = { path: 'unused', mode: 'write', queueLimit: 10 } as const;

  for (const [name, script] of [
    ['throws', "throw new Error('broken')"],
    ['ends', 'process.exit(0)'],
  ] as const) {
    test(`that ${name} fails what is under way and what comes after, and says so once`, async () => {
      const faults: Error[] = [];
      const broken = await SqliteThread.open(
        { ...options, onFatal: (error) => faults.push(error) },
        thread(script),
      );
      const outcomes = await Promise.allSettled([broken.send(query), broken.send(query)]);
      for (const outcome of outcomes) {
        assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseUnavailableError);
      }
      await assert.rejects(broken.send(query), DatabaseUnavailableError);
      await broken.close();
      assert.equal(faults.length, 1);
    });
  }

  test('that ends before it has opened is refused', async () => {
    const entry = new URL('data:text/javascript,process.exit(0)');
    await assert.rejects(SqliteThread.open({ ...options, onFatal: assert.ifError }, entry), /thread ended/);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../entries.suite.ts';
import { Thread } from './thread.ts';

/** A thread that opens and then does as the script says with each message. */
function thread(script: string): URL {
  const source = `import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (message) => {
      if (message === 'open') parentPort.postMessage({ kind: 'opened' });
      else { ${script} }
    });`;
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
}

function open(entry: URL, faults: Error[] = []): Promise<Thread<string, unknown>> {
  return Thread.open<string, unknown>({
    name: 'test',
    entry,
    open: 'open',
    close: 'close',
    hear: () => {},
    onEnd: (error) => faults.push(error),
  });
}

describe('a thread of the event log', { timeout: 10_000 }, () => {
  for (const [name, script] of [
    ['throws', "throw new Error('broken')"],
    ['ends', 'process.exit(0)'],
  ] as const) {
    test(`that ${name} says so once`, async () => {
      const faults: Error[] = [];
      const broken = await open(thread(script), faults);
      broken.send('go');
      await eventually(() => faults.length > 0, 'the fault');
      await broken.terminate();
      assert.equal(faults.length, 1);
    });
  }

  test('that is closed ends without a fault', async () => {
    const faults: Error[] = [];
    const closed = await open(thread('parentPort.close()'), faults);
    await closed.close();
    assert.deepEqual(faults, []);
  });

  test('that ends before it has opened, or refuses to, is refused', async () => {
    await assert.rejects(open(new URL('data:text/javascript,process.exit(0)')), /thread test ended/);
    const source = `import { parentPort } from 'node:worker_threads';
      parentPort.once('message', () => parentPort.postMessage({ kind: 'refused', message: 'not today' }));`;
    const refuses = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    await assert.rejects(open(refuses), /not today/);
  });
});

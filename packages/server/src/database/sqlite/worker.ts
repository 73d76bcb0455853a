/** The entry of a thread that holds one connection, so that the main thread never waits for a disk. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { SqliteEngine } from './engine.ts';
import type { FromThread, ToThread } from './protocol.ts';

function serve(port: MessagePort): void {
  const send = (message: FromThread) => port.postMessage(message);
  let engine: SqliteEngine | undefined;
  port.on('message', (message: ToThread) => {
    if (message.kind === 'open') {
      try {
        engine = new SqliteEngine(message);
        send({ kind: 'opened' });
      } catch (error) {
        send({ kind: 'refused', message: error instanceof Error ? error.message : String(error) });
      }
    } else if (message.kind === 'close') {
      engine?.close();
      port.close();
    } else if (engine) {
      send({ kind: 'replies', replies: engine.run(message.requests) });
    }
  });
}

if (parentPort === null) throw new Error('This file is the entry of a worker thread');
serve(parentPort);

/** The entry of the thread that holds the connection that reads. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { EventReader } from './event-reader.ts';
import { messageOf, readFailure } from './failure.ts';
import type { Answer, FromReader, Question, ToReader } from './protocol.ts';

function answer(reader: EventReader, question: Question): Answer {
  switch (question.kind) {
    case 'read':
      return { kind: 'read', ...reader.read(question.address, question.after, question.limits) };
    case 'bounds':
      return { kind: 'bounds', bounds: reader.bounds(question.topic) };
    case 'topics':
      return { kind: 'topics', topics: reader.topics(question.organizationId) };
    case 'offset-at':
      return { kind: 'offset-at', offset: reader.offsetAt(question.address, question.acceptedAt) };
    case 'check':
      reader.check();
      return { kind: 'check' };
  }
}

function serve(port: MessagePort): void {
  const send = (message: FromReader, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  let reader: EventReader | undefined;
  port.on('message', (message: ToReader) => {
    if (message.kind === 'open') {
      try {
        reader = new EventReader(message.path);
        send({ kind: 'opened' });
      } catch (error) {
        send({ kind: 'refused', message: messageOf(error) });
      }
    } else if (message.kind === 'close') {
      reader?.close();
      port.close();
    } else if (reader) {
      let reply: FromReader;
      try {
        reply = answer(reader, message);
      } catch (error) {
        reply = { kind: 'failed', failure: readFailure(error) };
      }
      send(reply, reply.kind === 'read' ? [reply.bytes.buffer] : []);
    }
  });
}

if (parentPort === null) throw new Error('This file is the entry of a worker thread');
serve(parentPort);

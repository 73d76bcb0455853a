import type { EventLog, EventRecord } from '../events/events.ts';
import { timestamp } from '../platform/clock.ts';
import { type TailEvent, type TailOptions, tail } from './tail.ts';

/**
 * A topic as server-sent events. Silence is filled with comments, so that nobody takes it for a lost line.
 *
 * No generator, because that would end only at its next event: a reader that goes away is let go at once.
 */
export function serverSentEvents(
  log: EventLog,
  options: TailOptions,
  stillAllowed: () => Promise<boolean> = async () => true,
): AsyncIterable<string> {
  let askedAt = performance.now();
  /** Whoever loses the right to listen hears nothing more, half a second later at the most. */
  const mayHear = async () => {
    if (performance.now() - askedAt < askAgainMilliseconds) return true;
    askedAt = performance.now();
    return stillAllowed();
  };
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const events = tail(log, { ...options, signal });
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const { value, done } = await events.next();
        if (!done && (await mayHear())) return { done: false, value: textOf(value) };
        leaving.abort();
        return { done: true, value: undefined };
      },
      return: async () => {
        leaving.abort();
        await events.return(undefined);
        return { done: true, value: undefined };
      },
    }),
  };
}

const askAgainMilliseconds = 500;

function textOf(event: TailEvent): string {
  switch (event.kind) {
    case 'following':
      return ': following\n\n';
    case 'quiet':
      return ': nothing new\n\n';
    case 'dropped':
      return `event: dropped\ndata: ${JSON.stringify({ messages: event.count })}\n\n`;
    case 'message':
      return `data: ${describe(event.record)}\n\n`;
  }
}

/** JSON is shown as it is, text as a string, and anything else in base64. */
function describe({ key, id, acceptedAt, mediaType, body }: EventRecord): string {
  const head = JSON.stringify({ messageKey: key, messageId: id, acceptedAt: timestamp(acceptedAt) });
  return `${head.slice(0, -1)},"body":${bodyOf(mediaType, body)}}`;
}

function bodyOf(mediaType: string, body: Uint8Array): string {
  const text = decoded(body);
  if (text !== undefined && mediaType === 'application/json') {
    // A line break ends a server-sent event's line; in JSON it is only ever white space between values.
    const line = text.replace(/[\r\n]+/g, ' ');
    if (isJson(line)) return line;
  }
  if (text !== undefined && mediaType.startsWith('text/')) return JSON.stringify(text);
  return JSON.stringify(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64'));
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The text of bytes that are one; what is no UTF-8 would be altered by showing it as text. */
function decoded(body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

import { connect, type Socket } from 'node:net';
import type { Answer } from './client.ts';
import { parseAnswers, type RawAnswers } from './raw-answers.ts';
import { within } from './service.ts';
import { eventually } from './waiting.ts';

/** A connection of a client that writes its own bytes, and so can behave as no HTTP library would. */
export interface Connection {
  readonly socket: Socket;
  send(bytes: string | Uint8Array): void;
  received(bodiless?: ReadonlySet<number>): RawAnswers;
  /** Whether the server has ended it, with or without ceremony. */
  isClosed(): boolean;
  /** Resolves when it is closed, and fails when that takes too long. */
  closed(milliseconds: number): Promise<void>;
  /** Resolves once this many answers are there in full, or once it is closed. */
  answered(count: number, milliseconds: number): Promise<readonly Answer[]>;
  destroy(): void;
}

export interface ConnectOptions {
  readonly localAddress?: string;
  /** Never read: what the server sends stays in its buffers. */
  readonly deaf?: boolean;
}

/** Opens a connection to the service. */
export async function openConnection(url: string, options: ConnectOptions = {}): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const { localAddress, deaf = false } = options;
  const socket = connect({
    host: hostname,
    port: Number(port),
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  const chunks: Buffer[] = [];
  let isClosed = false;
  if (deaf) socket.pause();
  else socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('end', () => {
    isClosed = true;
  });
  const ended = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve();
    });
  });
  await within(
    new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    }),
    5000,
    'no connection to the service',
  );
  // From here on a reset is one of the ways in which a server may end a connection.
  socket.on('error', () => {
    isClosed = true;
  });
  const received = (bodiless?: ReadonlySet<number>) => parseAnswers(Buffer.concat(chunks), bodiless);
  return {
    socket,
    send: (bytes) => {
      if (socket.writable) socket.write(bytes);
    },
    received,
    isClosed: () => isClosed,
    closed: (milliseconds) => within(ended, milliseconds, `the connection is open after ${milliseconds} ms`),
    answered: (count, milliseconds) =>
      eventually(`${count} answers`, milliseconds, () => {
        const { answers } = received();
        return answers.length >= count || isClosed ? answers : undefined;
      }),
    destroy: () => socket.destroy(),
  };
}

export interface Exchange {
  readonly answers: readonly Answer[];
  readonly incomplete: boolean;
  readonly closed: boolean;
}

/** Sends bytes on a connection of their own and answers what came back for them. */
export async function exchange(
  url: string,
  bytes: string | Uint8Array,
  options: { readonly answers?: number; readonly milliseconds?: number; readonly head?: boolean } = {},
): Promise<Exchange> {
  const bodiless = new Set(options.head === true ? [0] : []);
  const connection = await openConnection(url);
  try {
    connection.send(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    await eventually('an answer or the end of the connection', options.milliseconds ?? 4000, () => {
      const done = connection.received(bodiless).answers.length >= (options.answers ?? 1);
      return done || connection.isClosed() ? true : undefined;
    });
    return { ...connection.received(bodiless), closed: connection.isClosed() };
  } finally {
    connection.destroy();
  }
}

import type { Socket } from 'node:net';
import { destinations } from './lane-routes.ts';
import { Line, type LineParts } from './line.ts';
import type { LaneParts } from './passage.ts';

/** How often connections are looked at, and how long one may take to say what it wants. */
const lookMilliseconds = 500;

/**
 * A client is told less than it has, as Node does: one that sends a request at the last moment it was told
 * would otherwise find the connection gone.
 */
const keepAliveGraceMilliseconds = 1000;

export interface SocketLaneOptions {
  readonly parts: LaneParts;
  readonly keepAliveMilliseconds: number;
  /** Without a byte in either direction. */
  readonly idleMilliseconds: number;
  /** Gives a connection to Node's own server, with what was read of it so far. */
  handOver(socket: Socket, bytes: Buffer | undefined): void;
}

/**
 * The shortest way: connections on which requests of the busiest operations come one after the other, each
 * written in the usual form. Such a request is read off its bytes and answered in bytes, without the objects
 * and streams that Node makes for each, which cost more than everything else that is done for it.
 *
 * It knows no other form and has no words for a mistake. At the first request that is anything else, the
 * connection is handed over to Node's server as if it had been there from the beginning, and stays there.
 */
export class SocketLane {
  readonly #lines = new Set<Line>();
  readonly #options: SocketLaneOptions;
  readonly #parts: LineParts;
  readonly #look: NodeJS.Timeout;

  constructor(options: SocketLaneOptions) {
    this.#options = options;
    this.#parts = {
      lane: options.parts,
      find: destinations(options.parts.routes),
      keepAliveHeader: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveMilliseconds / 1000)}\r\n\r\n`,
      leave: (line, socket, bytes) => {
        this.#lines.delete(line);
        options.handOver(socket, bytes);
      },
      closed: (line) => this.#lines.delete(line),
    };
    this.#look = setInterval(() => this.#lookAtAll(), lookMilliseconds);
    this.#look.unref();
  }

  /** Takes a new connection. */
  take(socket: Socket): void {
    if (this.#options.parts.isDraining()) this.#options.handOver(socket, undefined);
    else this.#lines.add(new Line(this.#parts, socket));
  }

  /** Ends connections that wait for a request, and the others after their answer. */
  drain(): void {
    for (const line of this.#lines) line.endAfterAnswer();
  }

  /** Ends every connection at once. */
  cut(): void {
    for (const line of this.#lines) line.giveUp();
  }

  close(): void {
    clearInterval(this.#look);
    this.cut();
  }

  #lookAtAll(): void {
    const { keepAliveMilliseconds, idleMilliseconds } = this.#options;
    const now = performance.now();
    for (const line of this.#lines) {
      const waitsFor = now - line.waitsSince;
      if (line.isUndecided) {
        if (waitsFor >= lookMilliseconds) line.leave();
      } else if (line.isSending) {
        if (waitsFor >= idleMilliseconds) line.giveUp();
      } else if (line.isWaiting && waitsFor >= keepAliveMilliseconds + keepAliveGraceMilliseconds) {
        line.giveUp();
      }
    }
  }
}

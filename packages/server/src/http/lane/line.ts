import type { Socket } from 'node:net';
import { STATUS_CODES } from '../../platform/node-http.ts';
import type { HeaderList } from '../headers.ts';
import { HeadReader } from './head.ts';
import { type Destination, type FindDestination, type LaneRequest, readRequest } from './lane-routes.ts';
import { type Client, type LaneParts, Passage } from './passage.ts';

export interface LineParts {
  readonly lane: LaneParts;
  readonly find: FindDestination;
  /** The last lines of the head of every answer. */
  readonly keepAliveHeader: string;
  /** Is given a connection that goes on elsewhere. */
  leave(line: Line, socket: Socket, bytes: Buffer | undefined): void;
  closed(line: Line): void;
}

/** A request that is not there in full by its second piece is not worth keeping its bytes here. */
const mostHeldBytes = 16 * 1024;

/** Two credentials cannot come this way: a header that is given twice is not usual. */
const noRawHeaders: string[] = [];

/** One connection of the lane. It has one request at a time in hand. */
export class Line implements Client {
  /** Since when it waits for what it waits for now: a request, the rest of one, or an answer to be taken. */
  waitsSince = performance.now();
  readonly #parts: LineParts;
  readonly #socket: Socket;
  readonly #heads = new HeadReader();
  /** What has come and is not taken yet: a request in part, or those after the one in hand. */
  #held: Buffer | undefined;
  /** The rest of a long answer. It goes out in parts, which shows whether its client takes any of it. */
  #unsent: Buffer | undefined;
  #state: 'new' | 'waiting' | 'busy' | 'gone' = 'new';
  /** Whether to end it once the request in hand is answered. */
  #isEnding = false;
  /** Whether the client has said that it sends no more. */
  #hasEnded = false;
  #path = '';
  #destination: Destination | undefined;

  constructor(parts: LineParts, socket: Socket) {
    this.#parts = parts;
    this.#socket = socket;
    socket.on('data', this.#hear);
    socket.on('end', this.#end);
    socket.on('error', this.#fail);
    socket.on('close', this.#close);
    socket.on('drain', this.#proceed);
  }

  /** Has not sent a whole request since there was reason to expect one. */
  get isUndecided(): boolean {
    if (this.#state === 'new') return true;
    // What is held behind an answer that is not taken yet may well be whole.
    return this.#state === 'waiting' && this.#held !== undefined && !this.#socket.writableNeedDrain;
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Whether its client has yet to take what it was sent. */
  get isSending(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** Goes over to Node's server, with what was heard and not taken. */
  leave(): void {
    const socket = this.#socket;
    const bytes = this.#held;
    this.#state = 'gone';
    this.#held = undefined;
    socket.off('data', this.#hear);
    socket.off('end', this.#end);
    socket.off('error', this.#fail);
    socket.off('close', this.#close);
    socket.off('drain', this.#proceed);
    if (socket.isPaused()) socket.resume();
    this.#parts.leave(this, socket, bytes);
    if (this.#hasEnded) socket.emit('end');
  }

  endAfterAnswer(): void {
    this.#isEnding = true;
    this.#proceed();
  }

  giveUp(): void {
    this.#socket.destroy();
  }

  reply(status: number, headers: HeaderList, body: string): void {
    if (this.#state !== 'busy') return;
    const bytes = Buffer.byteLength(body);
    let text = status === 200 ? 'HTTP/1.1 200 OK\r\n' : `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    for (let index = 0; index < headers.length; index += 2) {
      text += `${headers[index]}: ${headers[index + 1]}\r\n`;
    }
    text += `content-length: ${bytes}\r\nDate: ${dateNow()}\r\n${this.#parts.keepAliveHeader}${body}`;
    // Text of plain ASCII is the same in both, and quicker to write as the simpler one.
    const encoding = bytes === body.length ? 'latin1' : 'utf8';
    const isTaken =
      text.length < this.#socket.writableHighWaterMark
        ? this.#socket.write(text, encoding)
        : this.#send(Buffer.from(text, encoding));
    this.#state = 'waiting';
    this.waitsSince = performance.now();
    if (!isTaken) this.#socket.pause();
    // Not at once: an answer may be given while its request is still being taken.
    else if (this.#held !== undefined || this.#isEnding || this.#hasEnded) queueMicrotask(this.#proceed);
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** Sends until its client has enough for now, and says whether that was all. */
  #send(bytes: Buffer): boolean {
    const partBytes = this.#socket.writableHighWaterMark;
    let isTaken = true;
    let at = 0;
    for (; isTaken && at < bytes.length; at += partBytes) {
      isTaken = this.#socket.write(bytes.subarray(at, at + partBytes), this.#partTaken);
    }
    this.#unsent = at < bytes.length ? bytes.subarray(at) : undefined;
    return isTaken;
  }

  readonly #partTaken = (): void => {
    this.waitsSince = performance.now();
  };

  readonly #hear = (piece: Buffer): void => {
    if (this.#held === undefined) {
      this.#held = piece;
      // Only the first piece counts: a client that sends byte after byte must not stay for as long as it likes.
      this.waitsSince = performance.now();
    } else this.#held = Buffer.concat([this.#held, piece]);
    if (this.#state === 'busy' || this.#socket.writableNeedDrain) this.#socket.pause();
    else this.#take(this.#held);
  };

  /** Goes on with what was kept back until a request was answered, or an answer read. */
  readonly #proceed = (): void => {
    if (this.#state === 'busy' || this.#state === 'gone' || this.#socket.writableNeedDrain) return;
    if (this.#unsent !== undefined && !this.#send(this.#unsent)) return;
    if (this.#held !== undefined) this.#take(this.#held);
    else if (this.#isEnding || this.#hasEnded) this.#socket.destroySoon();
    else if (this.#socket.isPaused()) this.#socket.resume();
  };

  /** Takes the first request of what has come; one that is not in its usual form is not for this lane. */
  #take(bytes: Buffer): void {
    const head = this.#parts.lane.isDraining() ? undefined : this.#heads.read(bytes);
    const request = head && readRequest(this.#find, head.url, head.headers);
    if (head === undefined || request === undefined) {
      this.leave();
      return;
    }
    const end = head.end + request.bodyBytes;
    if (bytes.length >= end) {
      this.#held = bytes.length === end ? undefined : bytes.subarray(end);
      this.#handle(request, bytes.subarray(head.end, end));
    } else if (this.#hasEnded || end > mostHeldBytes) this.leave();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  #handle(request: LaneRequest, body: Buffer): void {
    this.#state = 'busy';
    const passage = new Passage(this.#parts.lane, request, this);
    passage.enter(noRawHeaders, () => passage.carryOut(body));
  }

  /** Most clients call one operation many times. */
  readonly #find: FindDestination = (path) => {
    if (path !== this.#path) {
      this.#path = path;
      this.#destination = this.#parts.find(path);
    }
    return this.#destination;
  };

  /** The client sends no more, and may still wait for answers. */
  readonly #end = (): void => {
    this.#hasEnded = true;
    this.#proceed();
  };

  readonly #fail = (): void => {
    this.#socket.destroy();
  };

  readonly #close = (): void => {
    this.#state = 'gone';
    this.#parts.closed(this);
  };
}

let dateUntil = 0;
let date = '';

/** As Node writes it: the time to the second, made anew at most once in one. */
function dateNow(): string {
  const now = Date.now();
  if (now >= dateUntil) {
    date = new Date(now).toUTCString();
    dateUntil = now - (now % 1000) + 1000;
  }
  return date;
}

/**
 * The Runtime API of Lambda for one process. The process asks for its next invocation and waits; it is
 * handed one; it posts the answer or the error; it asks again. Whatever it does outside that order is
 * refused with a sentence, and hurts only itself.
 */

import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from '../../platform/node-http.ts';
import type { InvocationError } from './execution.ts';
import { largestAnswer } from './limits.ts';
import { parseRuntimeError } from './runtime-error.ts';

export interface DeliveredInvocation {
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly functionArn: string;
  readonly event: Uint8Array;
}

export interface RuntimeApiEvents {
  /** The process waits for an invocation. */
  onNext(): void;
  onAnswer(payload: Uint8Array): void;
  onError(error: InvocationError): void;
  onStartError(error: InvocationError): void;
}

const base = '/2018-06-01/runtime';
const connections = 32;

export class RuntimeApi {
  readonly #server: Server;
  readonly #prefix: string;
  readonly #events: RuntimeApiEvents;
  #waiting: ServerResponse | undefined;
  #inHand: DeliveredInvocation | undefined;

  private constructor(server: Server, prefix: string, events: RuntimeApiEvents) {
    this.#server = server;
    this.#prefix = prefix;
    this.#events = events;
  }

  /**
   * Listens on a socket file, or on a loopback port where `prefix` is the unguessable first part of every
   * path: other processes of the host can reach the port, but not what is behind it.
   */
  static async listen(
    at: { readonly socket: string } | { readonly prefix: string },
    events: RuntimeApiEvents,
  ): Promise<RuntimeApi> {
    const server = createServer({ keepAlive: true, requestTimeout: 0, headersTimeout: 10_000 });
    server.keepAliveTimeout = 0;
    server.timeout = 0;
    server.maxConnections = connections;
    const api = new RuntimeApi(server, 'prefix' in at ? `/${at.prefix}` : '', events);
    server.on('request', (request, response) => api.#serve(request, response));
    server.on('clientError', (_error, socket) => socket.destroy());
    if ('socket' in at) server.listen(at.socket);
    else server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // The process may run as another user; only its own sandbox has the way to this file.
    if ('socket' in at) chmodSync(at.socket, 0o666);
    return api;
  }

  /** What goes into AWS_LAMBDA_RUNTIME_API when it is a port. */
  get address(): string {
    const address = this.#server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return `127.0.0.1:${port}${this.#prefix}`;
  }

  /** Hands an invocation over; false when the process does not wait for one. */
  deliver(invocation: DeliveredInvocation): boolean {
    const response = this.#waiting;
    if (response === undefined) return false;
    this.#waiting = undefined;
    this.#inHand = invocation;
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': invocation.event.byteLength,
      'lambda-runtime-aws-request-id': invocation.requestId,
      'lambda-runtime-deadline-ms': String(invocation.deadlineMs),
      'lambda-runtime-invoked-function-arn': invocation.functionArn,
    });
    response.end(invocation.event);
    return true;
  }

  close(): void {
    this.#waiting = undefined;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    request.on('error', () => response.destroy());
    const call = callOf(request.url ?? '', this.#prefix);
    const refusal = this.#refusal(call, request.method);
    if (refusal !== undefined) refuse(response, refusal);
    else if (call?.kind === 'next') this.#wait(response);
    else if (call !== undefined) this.#receive(request, response, (body) => this.#post(call, request, body));
  }

  #refusal(call: Call | undefined, method: string | undefined): Refusal | undefined {
    if (call === undefined) return { status: 404, type: 'NotFound', message: 'There is no such path.' };
    const right = call.kind === 'next' ? 'GET' : 'POST';
    if (method !== right) return { status: 405, type: 'MethodNotAllowed', message: `Use ${right}.` };
    const inHand = this.#inHand?.requestId;
    if (call.kind === 'next' && (inHand !== undefined || this.#waiting !== undefined)) {
      const message =
        inHand === undefined ? 'One call waits already.' : `The invocation ${inHand} has not been answered.`;
      return { status: 403, type: 'InvalidStateTransition', message };
    }
    if (call.requestId !== undefined && call.requestId !== inHand) {
      return { status: 400, type: 'InvalidRequestID', message: 'This is not the invocation in hand.' };
    }
    return undefined;
  }

  #wait(response: ServerResponse): void {
    this.#waiting = response;
    response.once('close', () => {
      if (this.#waiting === response) this.#waiting = undefined;
    });
    this.#events.onNext();
  }

  #post(call: Call, request: IncomingMessage, body: Buffer): void {
    const statedType = request.headers['lambda-runtime-function-error-type'];
    if (call.kind === 'startError') {
      this.#events.onStartError(parseRuntimeError(body, statedType));
      return;
    }
    // The body took its time to arrive; meanwhile another answer may have come first.
    if (this.#inHand?.requestId !== call.requestId) return;
    this.#inHand = undefined;
    if (call.kind === 'answer') this.#events.onAnswer(body);
    else this.#events.onError(parseRuntimeError(body, statedType));
  }

  #receive(request: IncomingMessage, response: ServerResponse, done: (body: Buffer) => void): void {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.byteLength;
      if (length <= largestAnswer) chunks.push(chunk);
      // A little more is read so that the process can still hear why; nobody may stream for ever.
      else if (length > 2 * largestAnswer) tooLarge(() => request.destroy());
    });
    request.on('end', () => {
      if (length > largestAnswer) {
        tooLarge((message) => refuse(response, { status: 413, type: 'RequestEntityTooLarge', message }));
        return;
      }
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"OK"}');
      done(Buffer.concat(chunks));
    });
    const tooLarge = (tell: (message: string) => void): void => {
      const message = `The answer has more than the ${largestAnswer} bytes allowed.`;
      tell(message);
      if (this.#inHand === undefined) return;
      this.#inHand = undefined;
      this.#events.onError({ type: 'Function.ResponseSizeTooLarge', message });
    };
  }
}

interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

interface Call {
  readonly kind: 'next' | 'answer' | 'error' | 'startError';
  readonly requestId?: string | undefined;
}

function callOf(url: string, prefix: string): Call | undefined {
  if (!url.startsWith(`${prefix}${base}/`)) return undefined;
  const path = url.slice(prefix.length + base.length);
  if (path === '/invocation/next') return { kind: 'next' };
  if (path === '/init/error') return { kind: 'startError' };
  const [, requestId, what] = /^\/invocation\/([^/]+)\/(response|error)$/.exec(path) ?? [];
  if (requestId === undefined) return undefined;
  return { kind: what === 'response' ? 'answer' : 'error', requestId };
}

function refuse(response: ServerResponse, { status, type, message }: Refusal): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ errorType: type, errorMessage: message }));
}

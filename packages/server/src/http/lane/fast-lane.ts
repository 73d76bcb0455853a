import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OperationId } from '@millrace/contract';
import { Problem } from '../../platform/problem.ts';
import { type Admission, admit } from '../admission.ts';
import { type Arrival, carryOut } from '../arrival.ts';
import { checkMediaType } from '../body.ts';
import type { CommonHeaders, HeaderList } from '../headers.ts';
import { jsonMediaType } from '../operations.ts';
import { problemAnswer } from '../problems.ts';
import type { OperationRoute, Outcome } from '../route.ts';
import { type PathReader, pathReader, readQuery } from './address.ts';
import { readBody } from './body.ts';

/**
 * The way past the framework for the operations that are called most.
 *
 * A request in its usual form is let in, read, carried out and answered here, with the same parts that the
 * routes of the framework use and in the same order. One that is written in any unusual way is left untouched
 * for the framework. What a client sees must not tell which way its request went; a test compares the two.
 */
export type FastLane = (request: IncomingMessage, response: ServerResponse) => boolean;

/** They take a body by POST and answer with JSON. */
const operations: readonly OperationId[] = [
  'message',
  'getState',
  'listState',
  'upsertState',
  'incrementState',
];

export interface FastLaneParts {
  readonly routes: readonly OperationRoute[];
  readonly headers: CommonHeaders;
  requestId(request: IncomingMessage): string;
  isDraining(): boolean;
  /** What a thrown error is to its caller; faults of ours are logged. */
  refusalOf(error: unknown, requestId: string, route: OperationRoute): Problem;
  /** Is told of every answer. */
  answered(operation: OperationId, requestId: string, status: number, milliseconds: number): void;
}

interface LaneRoute {
  readonly route: OperationRoute;
  readonly readPath: PathReader;
}

/** Makes the lane, which says of each request whether it takes it. */
export function fastLane(parts: FastLaneParts): FastLane {
  const byLastWord = new Map<string, LaneRoute>();
  for (const route of parts.routes) {
    const { id, path } = route.operation;
    if (!operations.includes(id)) continue;
    byLastWord.set(path.slice(path.lastIndexOf('/')), { route, readPath: pathReader(path) });
  }
  return (request, response) => {
    if (!isUsual(request) || parts.isDraining()) return false;
    const url = request.url ?? '';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const known = byLastWord.get(path.slice(path.lastIndexOf('/')));
    const parameters = known?.readPath(path);
    if (known === undefined || parameters === undefined) return false;
    const query = mark < 0 ? {} : readQuery(url.slice(mark + 1));
    if (query === undefined) return false;
    const { route } = known;
    const length = Number(request.headers['content-length']);
    // Without a length, or with nothing to read, this is not a number from 1 on.
    if (
      !(length > 0 && length <= route.bodyBytes) ||
      checkMediaType(route.operation, request.headers) !== undefined
    ) {
      return false;
    }
    const passage = new Passage(parts, route, request, response);
    const arrival = { url, headers: request.headers, parameters, query };
    const admission = admit(route, request, parameters);
    if (admission instanceof Promise) {
      admission.then((admitted) => passage.go(arrival, length, admitted)).catch(passage.fail);
    } else {
      passage.go(arrival, length, admission);
    }
    return true;
  };
}

/** Whether a request has what nearly every one has and nothing that asks for more care. */
function isUsual({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === 'POST' &&
    httpVersion === '1.1' &&
    headers.host !== undefined &&
    headers.expect === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers['content-encoding'] === undefined &&
    isUsualType(headers['content-type'])
  );
}

const mediaType = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*(?:; ?charset=[a-z0-9-]+)?$/i;

/** The framework refuses what is no media type. */
function isUsualType(header: string | undefined): boolean {
  return header === 'application/json' || (header !== undefined && mediaType.test(header));
}

/** One request on its way through the lane. */
class Passage {
  readonly #parts: FastLaneParts;
  readonly #route: OperationRoute;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #startedAt = performance.now();
  readonly #id: string;
  readonly #headers: HeaderList;

  constructor(
    parts: FastLaneParts,
    route: OperationRoute,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    this.#parts = parts;
    this.#route = route;
    this.#request = request;
    this.#response = response;
    this.#id = parts.requestId(request);
    this.#headers = parts.headers(this.#id, request.headers.origin);
  }

  /** Goes on once it is decided whether the request may; one that may not is answered without its body. */
  go(
    asked: Pick<Arrival, 'url' | 'headers' | 'parameters' | 'query'>,
    length: number,
    { refusal, permission, limit }: Admission,
  ): void {
    if (limit !== undefined) {
      this.#headers.push('ratelimit-policy', limit.policyHeader, 'ratelimit', limit.header);
    }
    if (refusal !== undefined) {
      this.#answer(refusal);
      return;
    }
    const { url, headers, parameters, query } = asked;
    const admittedAt = performance.now();
    const visitorAddress = '';
    readBody(this.#request, length, (body) => {
      const arrival = { url, headers, parameters, query, body, visitorAddress, admittedAt, permission };
      try {
        carryOut(this.#route, arrival).then((outcome) => this.#answer(outcome), this.fail);
      } catch (error) {
        this.fail(error);
      }
    });
  }

  readonly fail = (error: unknown): void => {
    this.#answer(this.#parts.refusalOf(error, this.#id, this.#route));
  };

  #answer(outcome: Outcome | Problem): void {
    try {
      this.#write(outcome);
    } catch (error) {
      // Nothing is left to say it with; the fault is logged like every other.
      this.#parts.refusalOf(error, this.#id, this.#route);
      this.#response.destroy();
    }
  }

  #write(outcome: Outcome | Problem): void {
    const { status, body } = outcome instanceof Problem ? this.#refusal(outcome) : this.#success(outcome);
    const bytes = Buffer.byteLength(body);
    this.#headers.push('content-length', String(bytes));
    // Text of plain ASCII is the same in both, and quicker to write as the simpler one.
    this.#response.writeHead(status, this.#headers).end(body, bytes === body.length ? 'latin1' : 'utf8');
    const milliseconds = performance.now() - this.#startedAt;
    this.#parts.answered(this.#route.operation.id, this.#id, status, milliseconds);
  }

  #refusal(refusal: Problem): { status: number; body: string } {
    const { status, headers, body } = problemAnswer(refusal, this.#id);
    for (const [name, value] of Object.entries(headers)) this.#headers.push(name, value);
    return { status, body };
  }

  #success({ status, body }: Outcome): { status: number; body: string } {
    this.#headers.push('content-type', jsonMediaType);
    return { status, body: JSON.stringify(body) };
  }
}

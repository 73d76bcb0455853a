import type { OperationId } from '@millrace/contract';
import { Problem } from '../../platform/problem.ts';
import { type Admission, admit } from '../admission.ts';
import { type Arrival, carryOut } from '../arrival.ts';
import type { CommonHeaders, HeaderList } from '../headers.ts';
import { jsonMediaType } from '../operations.ts';
import { problemAnswer } from '../problems.ts';
import type { OperationRoute, Outcome } from '../route.ts';
import type { Asked, LaneRequest } from './lane-routes.ts';

export interface LaneParts {
  readonly routes: readonly OperationRoute[];
  readonly headers: CommonHeaders;
  /** Takes the id that a client gave its request, or makes one. */
  requestId(given: string | string[] | undefined): string;
  isDraining(): boolean;
  /** What a thrown error is to its caller; faults of ours are logged. */
  refusalOf(error: unknown, requestId: string, route: OperationRoute): Problem;
  /** Is told of every answer. */
  answered(operation: OperationId, requestId: string, status: number, milliseconds: number): void;
}

/** Whoever brought the request, and takes its answer back. */
export interface Client {
  reply(status: number, headers: HeaderList, body: string): void;
  /** Nothing can be said any more. */
  giveUp(): void;
}

/** One request on its way through a lane: with the parts that the framework's routes use, in the same order. */
export class Passage {
  readonly #parts: LaneParts;
  readonly #route: OperationRoute;
  readonly #asked: Asked;
  readonly #client: Client;
  readonly #startedAt = performance.now();
  readonly #id: string;
  readonly #headers: HeaderList;
  #permission: Admission['permission'];
  #admittedAt = 0;

  constructor(parts: LaneParts, { route, asked }: LaneRequest, client: Client) {
    this.#parts = parts;
    this.#route = route;
    this.#asked = asked;
    this.#client = client;
    this.#id = parts.requestId(asked.headers['x-request-id']);
    this.#headers = parts.headers(this.#id, asked.headers.origin);
  }

  /** Goes on to the body of a request that is let in; any other is answered without. */
  enter(rawHeaders: string[], goOn: () => void): void {
    const { headers, parameters } = this.#asked;
    const admission = admit(this.#route, { headers, rawHeaders }, parameters);
    if (admission instanceof Promise) {
      admission
        .then((admitted) => {
          if (this.#isAdmitted(admitted)) goOn();
        })
        .catch(this.#fail);
    } else if (this.#isAdmitted(admission)) goOn();
  }

  #isAdmitted({ refusal, permission, limit }: Admission): boolean {
    if (limit !== undefined) {
      this.#headers.push('ratelimit-policy', limit.policyHeader, 'ratelimit', limit.header);
    }
    if (refusal !== undefined) {
      this.#answer(refusal);
      return false;
    }
    this.#permission = permission;
    this.#admittedAt = performance.now();
    return true;
  }

  readonly carryOut = (body: Buffer): void => {
    const { url, headers, parameters, query } = this.#asked;
    const arrival: Arrival = {
      url,
      headers,
      parameters,
      query,
      body,
      visitorAddress: '',
      admittedAt: this.#admittedAt,
      permission: this.#permission,
    };
    try {
      carryOut(this.#route, arrival).then((outcome) => this.#answer(outcome), this.#fail);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #fail = (error: unknown): void => {
    this.#answer(this.#parts.refusalOf(error, this.#id, this.#route));
  };

  #answer(outcome: Outcome | Problem): void {
    try {
      this.#write(outcome);
    } catch (error) {
      // Nothing is left to say it with; the fault is logged like every other.
      this.#parts.refusalOf(error, this.#id, this.#route);
      this.#client.giveUp();
    }
  }

  #write(outcome: Outcome | Problem): void {
    const { status, body } = outcome instanceof Problem ? this.#refusal(outcome) : this.#success(outcome);
    this.#client.reply(status, this.#headers, body);
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

import { type ProblemCode, problems } from '@millrace/contract';

/** One place in a request that is wrong. */
export interface FieldError {
  /** A JSON pointer into the body, or `/query/...`, `/path/...`, `/header/...`. */
  readonly pointer: string;
  readonly message: string;
}

/**
 * An answer that is not what the caller wanted, as a value. Features return one; only the HTTP layer
 * turns it into a response.
 */
export class Problem {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly errors: readonly FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: ProblemCode, detail: string, more: ProblemDetails) {
    this.code = code;
    this.detail = detail;
    this.errors = more.errors;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.headers = more.headers;
  }
}

export interface ProblemDetails {
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Makes a problem of the catalogue. Without a detail of its own it carries the catalogue's explanation. */
export function problem(code: ProblemCode, detail?: string, more: ProblemDetails = {}): Problem {
  return new Problem(code, detail ?? problems[code].explanation, more);
}

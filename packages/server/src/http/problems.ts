import { type ProblemCode, problems, problemType } from '@millrace/contract';
import type { FastifyReply } from 'fastify';
import { DatabaseBusyError, DatabaseUnavailableError } from '../database/errors.ts';
import { EventLogFullError, EventLogUnavailableError } from '../events/events.ts';
import { MailQueueFullError } from '../mail/mail.ts';
import { type Problem, problem } from '../platform/problem.ts';

/** The body of a problem (RFC 9457). `error` repeats the detail for existing clients. */
export function problemBody(problem: Problem, requestId: string): Record<string, unknown> {
  const { status, title } = problems[problem.code];
  return {
    type: problemType(problem.code),
    title,
    status,
    detail: problem.detail,
    code: problem.code,
    requestId,
    error: problem.detail,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
  };
}

/** An answer as it is sent, besides the headers that every answer has. */
export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The one place where a problem becomes a response. */
export function problemAnswer(problem: Problem, requestId: string): ProblemAnswer {
  const { status } = problems[problem.code];
  const headers: Record<string, string> = {};
  if (problem.retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(problem.retryAfterSeconds)));
  }
  if (problem.headers !== undefined) Object.assign(headers, problem.headers);
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  headers['content-type'] = 'application/problem+json; charset=utf-8';
  return { status, headers, body: JSON.stringify(problemBody(problem, requestId)) };
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, headers, body } = problemAnswer(problem, reply.request.id);
  return reply.code(status).headers(headers).send(body);
}

/** What the framework itself refuses, by its error code. */
const frameworkProblems: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'MEDIA_TYPE_NOT_SUPPORTED',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'MALFORMED_REQUEST',
  FST_ERR_BAD_URL: 'MALFORMED_REQUEST',
  FST_ERR_ASYNC_CONSTRAINT: 'MALFORMED_REQUEST',
  FST_ERR_MAX_PARAM_LENGTH: 'URI_TOO_LONG',
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: 'MALFORMED_REQUEST',
  ERR_HTTP_INVALID_HEADER_VALUE: 'MALFORMED_REQUEST',
};

/** The problem that a thrown error stands for; undefined for a fault of ours. */
export function problemOfError(error: unknown, bodyLimit: number): Problem | undefined {
  if (error instanceof DatabaseBusyError || error instanceof MailQueueFullError) {
    return problem('OVERLOADED', undefined, { retryAfterSeconds: 1 });
  }
  if (error instanceof EventLogFullError) return problem('OVERLOADED', undefined, { retryAfterSeconds: 1 });
  if (error instanceof DatabaseUnavailableError || error instanceof EventLogUnavailableError) {
    return problem('STORAGE_FULL', undefined, { retryAfterSeconds: 5 });
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return problem('STORAGE_FULL', undefined, { retryAfterSeconds: 5 });
  }
  const known = frameworkProblems[code];
  if (known === 'BODY_TOO_LARGE') return bodyTooLarge(bodyLimit);
  if (known !== undefined) return problem(known);
  // A client that goes away in the middle of its body.
  if (code === 'ECONNRESET' || code === 'ABORT_ERR') return problem('MALFORMED_REQUEST');
  return undefined;
}

export function bodyTooLarge(limit: number): Problem {
  return problem('BODY_TOO_LARGE', `The body is larger than the limit of ${limit} bytes.`);
}

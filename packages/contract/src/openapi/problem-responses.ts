import Type from 'typebox';
import { problemCodes } from '../applicable-problems.ts';
import { strict } from '../names.ts';
import { type ProblemCode, type ProblemDefinition, problems, problemType } from '../problems.ts';
import type { OpenApiHeader, OpenApiResponse, Reference } from './document.ts';

/** The body of every error: RFC 9457 with a stable code and the id of the request. */
export const Problem = strict(
  {
    type: Type.String({ description: 'The path of the page that explains the code.' }),
    title: Type.String({ description: 'What the code means, the same each time.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    detail: Type.String({ description: 'What went wrong this time and what to do, for a person.' }),
    code: Type.String({
      pattern: '^[A-Z][A-Z_]*$',
      description: 'Stable; programs may branch on it. New codes may be added.',
    }),
    requestId: Type.String({ description: 'Also in the header x-request-id. Name it when asking for help.' }),
    error: Type.String({ description: 'The same text as detail.' }),
    errors: Type.Optional(
      Type.Array(
        strict({
          pointer: Type.String({ description: 'A JSON pointer to the place.' }),
          message: Type.String({ description: 'What was expected there.' }),
        }),
        { description: 'Each place that is not valid; only with VALIDATION_FAILED.' },
      ),
    ),
  },
  'A problem: the body of every error.',
);

const definitions: Readonly<Record<ProblemCode, ProblemDefinition>> = problems;

/** What a problem of this code looks like on the wire. */
export function problemExample(code: ProblemCode): Type.Static<typeof Problem> {
  const { status, title, explanation } = definitions[code];
  return {
    type: problemType(code),
    title,
    status,
    detail: explanation,
    code,
    requestId: 'r9Kx2LmQ7vRt4WbYc8Zn3J',
    error: explanation,
    ...(code === 'VALIDATION_FAILED'
      ? { errors: [{ pointer: '/username', message: 'must be a string' }] }
      : {}),
  };
}

export const headerComponents: Readonly<Record<string, OpenApiHeader>> = {
  RequestId: {
    description: 'The id of the request, also in the body of a problem and in the logs.',
    schema: { type: 'string' },
    example: 'r9Kx2LmQ7vRt4WbYc8Zn3J',
  },
  RateLimit: {
    description: 'What is left of the rate limit of the organization, and when it is whole again.',
    schema: { type: 'string' },
    example: '"organization";r=99987;t=1',
  },
  RateLimitPolicy: {
    description: 'The rate limit of the organization: a quota and its window in seconds.',
    schema: { type: 'string' },
    example: '"organization";q=100000;w=10',
  },
  RetryAfter: {
    description: 'Seconds to wait before trying again.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
};

const header = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

export const requestIdHeader = { 'x-request-id': header('RequestId') };
export const rateLimitHeaders = {
  RateLimit: header('RateLimit'),
  'RateLimit-Policy': header('RateLimitPolicy'),
};
const retryHeader = { 'Retry-After': header('RetryAfter') };

const statusTitles: Readonly<Record<number, string>> = {
  400: 'The request is not valid.',
  401: 'There is no credential, or it is not accepted.',
  403: 'The caller may not do this.',
  404: 'There is no such thing, or the caller is not a member of the organization.',
  409: 'It conflicts with what is there.',
  413: 'The body is over its limit.',
  415: 'The media type is not supported here.',
  422: 'Understood, but it cannot be done.',
  429: 'Too many requests or attempts.',
  500: 'A fault on our side.',
  502: 'The task failed.',
  503: 'Overloaded, out of space or shutting down. Nothing was accepted.',
  504: 'The task ran out of time.',
};

function headersOfStatus(status: number): Readonly<Record<string, Reference>> {
  if (status === 429) return { ...requestIdHeader, ...retryHeader, ...rateLimitHeaders };
  if (status === 503) return { ...requestIdHeader, ...retryHeader };
  return requestIdHeader;
}

/** The statuses of the given problems, ascending. */
export function statusesOf(codes: readonly ProblemCode[]): readonly number[] {
  return [...new Set(codes.map((code) => definitions[code].status))].sort((a, b) => a - b);
}

export function problemResponseReference(status: number): Reference {
  return { $ref: `#/components/responses/Problem${status}` };
}

/** One response for each status, with an example for each of the codes in use that has it. */
export function problemResponses(codesInUse: ReadonlySet<ProblemCode>): Record<string, OpenApiResponse> {
  const codes = problemCodes.filter((code) => codesInUse.has(code));
  return Object.fromEntries(
    statusesOf(codes).map((status) => [
      `Problem${status}`,
      {
        description: statusTitles[status] ?? 'A problem.',
        headers: headersOfStatus(status),
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(
              codes
                .filter((code) => definitions[code].status === status)
                .map((code) => [code, { summary: definitions[code].title, value: problemExample(code) }]),
            ),
          },
        },
      },
    ]),
  );
}

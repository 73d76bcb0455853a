import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ProblemCode, problems } from '@millrace/contract';
import { STATUS_CODES } from '../platform/node-http.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { securityHeaders } from './headers.ts';
import { problemBody } from './problems.ts';

/** What Node refuses before there is a request. */
const malformed: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
};

/** How long a client that sent rubbish has to read the answer and close. */
const lingerMilliseconds = 2000;

/** Answers what is no HTTP request, straight to the socket, in the same form as every other error. */
export function answerMalformed(nextRequestId: () => string) {
  return (error: Error & { code?: string }, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const { status, headers, body } = bareAnswer(
      problem(malformed[error.code ?? ''] ?? 'MALFORMED_REQUEST'),
      nextRequestId(),
    );
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    socket.setTimeout(lingerMilliseconds, () => socket.destroy());
  };
}

/** Answers an `Expect` that nobody can meet, which Node never hands on as a request. */
export function refuseExpectations(server: Server, nextRequestId: () => string): void {
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const { status, headers, body } = bareAnswer(problem('EXPECTATION_FAILED'), nextRequestId());
    response.writeHead(status, headers).end(body);
  });
}

function bareAnswer(refusal: Problem, requestId: string) {
  const body = JSON.stringify(problemBody(refusal, requestId));
  return {
    status: problems[refusal.code].status,
    headers: {
      'x-request-id': requestId,
      ...securityHeaders,
      'content-type': 'application/problem+json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    },
    body,
  };
}

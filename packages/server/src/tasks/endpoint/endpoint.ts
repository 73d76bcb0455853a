import { type Problem, problem } from '../../platform/problem.ts';
import type { InvocationResult, TaskPool } from '../execution/execution.ts';
import { type Cors, corsHeaders } from './cors.ts';
import { type EndpointRequest, headerOf } from './endpoint-request.ts';
import { type EndpointAnswer, fromFunctionUrlAnswer } from './function-url-answer.ts';
import { toFunctionUrlEvent } from './function-url-event.ts';

/** How the endpoint of a task was deployed. */
export interface EndpointSettings {
  /** Whether anybody may call, as against members of the organization only. */
  readonly isPublic: boolean;
  readonly cors?: Cors | undefined;
}

export interface EndpointCall {
  readonly request: EndpointRequest;
  readonly settings: EndpointSettings;
  readonly pool: Pick<TaskPool, 'invoke'>;
  /** Aborted when the caller is gone. */
  readonly signal?: AbortSignal | undefined;
  /** Bytes that a task may answer with, as it gives them to us. */
  readonly mostAnswerBytes: number;
  /** Whether what a header Authorization holds is a credential for the service itself. */
  readonly isOurCredential: (authorization: string) => boolean;
}

/**
 * A page of a task comes from the same origin as the service and other tasks. In a sandbox it gets an origin
 * of its own, so that its scripts see nothing that the browser keeps for the others.
 */
const sandbox = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts';

/**
 * Calls the endpoint of a task. Whoever wires this to HTTP answers `preflightAnswer` before it asks who is
 * calling, then lets in members only where the endpoint is not public, and sends the headers of the answer
 * in place of the service's own ones for caching, content security and other origins.
 */
export async function callEndpoint(call: EndpointCall): Promise<EndpointAnswer | Problem> {
  const { request, settings, pool, signal } = call;
  const authorization = headerOf(request, 'authorization');
  const withholdAuthorization =
    !settings.isPublic || (authorization !== undefined && call.isOurCredential(authorization));
  const event = toFunctionUrlEvent(request, { isPublic: settings.isPublic, withholdAuthorization });
  const result = await pool.invoke({
    requestId: request.requestId,
    event: Buffer.from(JSON.stringify(event)),
    ...(signal === undefined ? {} : { signal }),
  });
  if (result.outcome === 'failure') return failed(call, result);
  if (result.payload.byteLength > call.mostAnswerBytes) {
    return taskFailed(call, `The answer of the task has more than ${call.mostAnswerBytes} bytes.`);
  }
  const answer = fromFunctionUrlAnswer(result.payload);
  if ('malformed' in answer) return taskFailed(call, `The answer of the task ${answer.malformed}.`);
  return { ...answer, headers: finished(call, answer.headers) };
}

function finished({ request, settings }: EndpointCall, given: EndpointAnswer['headers']) {
  const { cors } = settings;
  const policy = valuesOf(given, 'content-security-policy');
  const headers = given.filter(
    ([name]) =>
      name !== 'content-security-policy' && (cors === undefined || !name.startsWith('access-control-')),
  );
  if (!headers.some(([name]) => name === 'cache-control')) headers.push(['cache-control', 'no-store']);
  // Policies in a list all hold.
  headers.push(['content-security-policy', [...policy, sandbox].join(', ')]);
  return cors === undefined ? headers : [...headers, ...corsHeaders(request, cors)];
}

function valuesOf(headers: EndpointAnswer['headers'], wanted: string): string[] {
  return headers.filter(([name]) => name === wanted).map(([, value]) => value);
}

function failed(call: EndpointCall, { kind }: InvocationResult & { outcome: 'failure' }): Problem {
  switch (kind) {
    case 'timeout':
      return problem('TASK_TIMED_OUT', undefined, { headers: problemHeaders(call) });
    case 'unavailable':
      return problem('OVERLOADED', undefined, { headers: problemHeaders(call), retryAfterSeconds: 1 });
    case 'error':
    case 'crash':
      // What it said is for those who may read its log, which may be fewer than those who may call it.
      return taskFailed(call);
  }
}

function taskFailed(call: EndpointCall, detail?: string): Problem {
  return problem('TASK_FAILED', detail, { headers: problemHeaders(call) });
}

/** A page of another origin may read a problem as it may read an answer. */
function problemHeaders({ request, settings }: EndpointCall): Record<string, string> {
  return settings.cors === undefined ? {} : Object.fromEntries(corsHeaders(request, settings.cors));
}

import type { Contract } from '@millrace/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Organization } from '../../organizations/organization-store.ts';
import type { Organizations } from '../../organizations/organizations.ts';
import type { RateLimits } from '../../organizations/rate-limits.ts';
import type { Clock } from '../../platform/clock.ts';
import { Problem, problem } from '../../platform/problem.ts';
import { preflightAnswer } from '../../tasks/endpoint/cors.ts';
import { callEndpoint } from '../../tasks/endpoint/endpoint.ts';
import { endpointTarget } from '../../tasks/endpoint/endpoint-request.ts';
import type { EndpointAnswer } from '../../tasks/endpoint/function-url-answer.ts';
import type { EndpointSettings } from '../../tasks/settings.ts';
import type { TaskRun } from '../../tasks/task-run.ts';
import type { TaskRuns } from '../../tasks/task-runs.ts';
import type { Gatekeeper } from '../access.ts';
import { hasTwoCredentials } from '../admission.ts';
import { answerPreflight } from '../headers.ts';
import type { KnownPaths } from '../not-found.ts';
import { sendProblem } from '../problems.ts';
import { RequestValidator } from '../validation.ts';

export interface EndpointParts {
  readonly contract: Contract;
  readonly organizations: Organizations;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimits: RateLimits;
  readonly runs: TaskRuns;
  readonly clock: Clock;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** What the service says of every answer of its own, and a task says itself. */
const replaced = [
  'cache-control',
  'content-security-policy',
  'access-control-allow-origin',
  'access-control-expose-headers',
];

/** An endpoint that may be called: the task on this node, and how it was deployed. */
interface Target {
  readonly organization: Organization;
  readonly run: TaskRun;
  readonly settings: EndpointSettings;
}

/** The route of the endpoints of tasks: any method, any body, and answers that are the task's own. */
export function registerTaskEndpoint(app: FastifyInstance, paths: KnownPaths, parts: EndpointParts): void {
  const { operations, limits } = parts.contract;
  const operation = operations.taskEndpoint;
  const url = operation.path.replace(/\{(\w+)\}/g, ':$1');
  const validator = new RequestValidator(operation);
  const door = new Door(parts, validator);
  for (const each of [url, url.replace(/\/\*$/, '')]) {
    app.route({
      method: [...methods],
      url: each,
      exposeHeadRoute: false,
      config: { operation: operation.id },
      bodyLimit: operation.limits.bodyBytes,
      onRequest: async (request, reply) => {
        const decision = await door.decide(request, reply);
        if (decision instanceof Problem) return sendProblem(reply, decision);
        if (decision === 'preflight') return answerPreflight(reply);
        return decision === undefined ? undefined : send(reply, decision);
      },
      handler: async (request, reply) => {
        // A body may take its time, and much may have changed meanwhile.
        const target = await door.enter(request);
        if (target instanceof Problem) return sendProblem(reply, target);
        const outcome = await call(parts, target, request, reply, limits.invokeBytes);
        return outcome instanceof Problem ? sendProblem(reply, outcome) : send(reply, outcome);
      },
    });
    paths.add(each, [...methods]);
  }
}

/**
 * Decides who may call. A public endpoint is for anybody. Of anything else, also of what does not exist,
 * only members learn, exactly as with every other operation of an organization.
 */
class Door {
  readonly #parts: EndpointParts;
  readonly #validator: RequestValidator;

  constructor(parts: EndpointParts, validator: RequestValidator) {
    this.#parts = parts;
    this.#validator = validator;
  }

  /** Before the body is read: a refusal, an answer that needs no task, or undefined to go on. */
  async decide(
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Problem | EndpointAnswer | 'preflight' | undefined> {
    if (hasTwoCredentials(request.raw.rawHeaders)) return problem('CREDENTIAL_INVALID');
    const invalid = this.#validator.path({ ...named(request) });
    if (invalid !== undefined) return invalid;
    const { organization, settings } = await this.#find(request);
    const isPreflight = request.headers['access-control-request-method'] !== undefined;
    if (request.method === 'OPTIONS' && isPreflight) {
      const { rawHeaders } = request.raw;
      const answer = preflightAnswer({ method: 'OPTIONS', rawHeaders }, settings?.cors);
      if (answer !== undefined) return answer;
      if (settings?.isPublic !== true) return 'preflight';
    }
    const refused = settings?.isPublic === true ? undefined : await this.#refuse(request);
    if (refused !== undefined) return refused;
    if (organization === undefined) return problem('ORGANIZATION_NOT_FOUND');
    const decision = await this.#parts.rateLimits.take(organization);
    reply.header('ratelimit-policy', decision.policyHeader);
    reply.header('ratelimit', decision.header);
    return decision.problem;
  }

  /** The endpoint, once the whole request is there. */
  async enter(request: FastifyRequest): Promise<Target | Problem> {
    const { organization, run, settings } = await this.#find(request);
    const refused = settings?.isPublic === true ? undefined : await this.#refuse(request);
    if (refused !== undefined) return refused;
    if (organization === undefined) return problem('ORGANIZATION_NOT_FOUND');
    if (run === undefined || settings === undefined) {
      return problem('TASK_NOT_FOUND', 'There is no such task, or its active version has no endpoint.');
    }
    if (run.isPaused) return problem('OVERLOADED', 'The task is paused.', { retryAfterSeconds: 30 });
    return { organization, run, settings };
  }

  async #find(request: FastifyRequest) {
    const { organizationName, taskId } = named(request);
    const organization = await this.#parts.organizations.find(organizationName);
    const run =
      organization === undefined
        ? undefined
        : this.#parts.runs.find({ organizationId: organization.id, taskId });
    return { organization, run, settings: run?.version.settings.endpoint };
  }

  /** Why somebody who needs to be a member may not call, if so. */
  async #refuse(request: FastifyRequest): Promise<Problem | undefined> {
    const { gatekeeper } = this.#parts;
    const access = { kind: 'organization', role: 'VIEWER' } as const;
    const caller = await gatekeeper.authenticate(access, request.headers.authorization);
    if (caller instanceof Problem) return caller;
    const permission = await gatekeeper.permit(access, caller, named(request));
    return permission instanceof Problem ? permission : undefined;
  }
}

async function call(
  { gatekeeper, clock }: EndpointParts,
  { organization, run, settings }: Target,
  request: FastifyRequest,
  reply: FastifyReply,
  mostAnswerBytes: number,
): Promise<EndpointAnswer | Problem> {
  const target = endpointTarget(request.raw.url ?? '');
  if (target === undefined) return problem('NOT_FOUND');
  const { authorization } = request.headers;
  const caller =
    authorization === undefined
      ? undefined
      : await gatekeeper.authenticate({ kind: 'account', apiKey: true }, authorization);
  const isOurs = caller !== undefined && !(caller instanceof Problem);
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  allowSilence(request, run.version.settings.timeoutSec);
  return callEndpoint({
    request: {
      organization,
      taskId: named(request).taskId,
      method: request.method,
      ...target,
      rawHeaders: request.raw.rawHeaders,
      body: request.body instanceof Uint8Array ? request.body : new Uint8Array(),
      httpVersion: request.raw.httpVersion,
      scheme: request.protocol === 'https' ? 'https' : 'http',
      sourceIp: request.ip,
      requestId: request.id,
      receivedAt: clock.now(),
    },
    settings,
    pool: { invoke: ({ requestId, ...invocation }) => run.invoke('endpoint', invocation, requestId) },
    signal: gone.signal,
    mostAnswerBytes,
    isOurCredential: () => isOurs,
  });
}

/** For queueing, starting and answering, besides the work itself. */
const silenceSeconds = 60;

/** The connection is silent while the task works, which may be longer than a connection may be otherwise. */
function allowSilence({ raw, server }: FastifyRequest, seconds: number): void {
  const usual = server.server.timeout;
  const needed = (seconds + silenceSeconds) * 1000;
  if (usual === 0 || needed <= usual) return;
  const { socket } = raw;
  socket.setTimeout(needed);
  raw.once('close', () => socket.setTimeout(usual));
}

function named(request: FastifyRequest): { organizationName: string; taskId: string } {
  const { organizationName = '', taskId = '' } = request.params as Record<string, string>;
  return { organizationName, taskId };
}

function send(reply: FastifyReply, { status, headers, body }: EndpointAnswer): FastifyReply {
  for (const name of replaced) reply.removeHeader(name);
  const values = new Map<string, string[]>();
  for (const [name, value] of headers) values.set(name, [...(values.get(name) ?? []), value]);
  for (const [name, list] of values) reply.header(name, list.length === 1 ? list[0] : list);
  reply.code(status);
  return body.byteLength === 0
    ? reply.send()
    : reply.send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
}

import type { NamedType } from '@millrace/contract';
import { Gate } from '../platform/gate.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { randomId } from '../platform/random.ts';
import { codeKey } from './code.ts';
import { Deployment, endUnsuccessfully } from './deployment.ts';
import {
  claimUpload,
  deleteDeployment,
  dropUpload,
  findDeployment,
  insertUpload,
  listDeploying,
  listEarlierUploads,
  listOld,
} from './deployment-store.ts';
import { type TaskParts, turnOf } from './parts.ts';
import { type DeployRequest, settingsOf, type VersionSettings } from './settings.ts';
import { type TaskVersion, versionAnswer } from './task-status.ts';
import type { TaskAddress } from './task-store.ts';
import { trialLimits } from './trial.ts';
import type { OrganizationReference } from './version.ts';
import { cycleOf } from './wiring.ts';

/** How long an upload URL is good for. */
const uploadMilliseconds = 15 * 60_000;
/** How long an upload waits to be deployed, and how long it is told what became of it. */
const sessionMilliseconds = 24 * 60 * 60_000;
/** A deployment that is longer under way belongs to a node that is gone. */
export const lostMilliseconds = 30 * 60_000;
const sweptAtOnce = 100;
/** The uploads of a task that wait to be deployed; more are a sign that nobody will. */
const keptUploads = 20;

/** Names in the environment of a task that are the service's to set. */
const reservedNames = /^(?:AWS_LAMBDA_|LAMBDA_|MILLRACE_|dataspray_|_HANDLER$)/;

/**
 * Uploads and what becomes of them. A session is made by an upload and used by one deployment; its row says
 * how that went. The code is checked, unpacked and started once before the version exists, so a version
 * that exists has run. Nothing is visible of a deployment that fails but its reason.
 */
export class Deployments {
  readonly #parts: TaskParts;
  readonly #gate = new Gate(trialLimits);

  constructor(parts: TaskParts) {
    this.#parts = parts;
  }

  async upload(
    organizationId: string,
    request: NamedType<'UploadCodeRequest'>,
  ): Promise<NamedType<'UploadCodeResponse'>> {
    const { database, clock, random, objects } = this.#parts;
    const sessionId = randomId(random);
    const signed = await objects.signedPut(codeKey(organizationId, sessionId), {
      expiresAt: clock.now() + uploadMilliseconds,
      contentLength: request.contentLengthBytes,
    });
    const address: TaskAddress = { organizationId, taskId: request.taskId };
    await this.#dropEarlier(address);
    await insertUpload(database.query, address, sessionId, clock.now());
    return { sessionId, presignedUrl: signed.url, codeUrl: codeUrlOf(sessionId) };
  }

  async check(address: TaskAddress, sessionId: string): Promise<NamedType<'DeployVersionCheckResponse'>> {
    const found = await findDeployment(this.#parts.database.query, address, sessionId);
    if (found === undefined) return { status: 'NOTFOUND' };
    if (found.status === 'FAILED') return { status: 'FAILED', errorStr: found.error ?? '' };
    if (found.status !== 'SUCCESS') return { status: 'PROCESSING' };
    const { version = 0, description = '' } = found;
    return { status: 'SUCCESS', result: versionAnswer(address.taskId, { number: version, description }) };
  }

  /**
   * Deploys an upload as a new version. The outcome comes as `done` as soon as what can be refused at once
   * was not: a caller may wait for it or ask later with `check`.
   */
  async deploy(
    organization: OrganizationReference,
    taskId: string,
    sessionId: string,
    request: DeployRequest,
  ): Promise<{ done: Promise<TaskVersion | Problem> } | Problem> {
    const { database, clock, nodeId, turns, log } = this.#parts;
    const address: TaskAddress = { organizationId: organization.id, taskId };
    const settings = settingsOf(request);
    const refusal = await this.#refusal(address, sessionId, request, settings);
    if (refusal !== undefined) return refusal;
    if (turns.isCrowded(turnOf(address))) return crowded();
    if (!(await claimUpload(database.query, sessionId, nodeId, clock.now()))) return problem('SESSION_USED');
    const deployment = new Deployment(this.#parts, this.#gate, {
      address,
      organization,
      sessionId,
      settings,
      description: request.description ?? '',
      isSwitch: request.switchToNow,
    });
    const done = turns.take(turnOf(address), () => deployment.run());
    // Also where nobody waits for it.
    done.catch((error: unknown) =>
      log.error({ event: 'tasks.deploy-lost', ...address, error }, 'not written'),
    );
    return { done };
  }

  /** Ends what a process that is gone was at, this node's own from before the start among it. */
  async recover(isStart: boolean): Promise<void> {
    const { database, clock, nodeId } = this.#parts;
    const before = clock.now() - lostMilliseconds;
    for (const lost of await listDeploying(database.query, isStart ? nodeId : '', before)) {
      const reason = 'The service ended while this was under way. Upload the code again.';
      await endUnsuccessfully(this.#parts, lost, lost.sessionId, lost.keyId, reason);
    }
  }

  /** Forgets old sessions, and the code of those that became nothing. */
  async sweep(): Promise<void> {
    const { database, clock, code } = this.#parts;
    await this.recover(false);
    const before = clock.now() - sessionMilliseconds;
    for (const old of await listOld(database.query, before, sweptAtOnce)) {
      if (old.status !== 'SUCCESS') await code.delete(old.organizationId, old.sessionId);
      await deleteDeployment(database.query, old.sessionId);
    }
  }

  /** Makes room for one more upload: of those that nobody deployed a task keeps the newest. */
  async #dropEarlier(address: TaskAddress): Promise<void> {
    const { database, clock, code } = this.#parts;
    const earlier = await listEarlierUploads(database.query, address, keptUploads - 1, sweptAtOnce);
    const reason = `There were ${keptUploads} newer uploads of this task. Upload the code again.`;
    // The URL may be good for as long, so the sweep that forgets the session has another look at its code.
    const forgottenAfter = clock.now() + uploadMilliseconds - sessionMilliseconds;
    for (const sessionId of earlier) {
      const isDropped = await dropUpload(database.query, sessionId, reason, forgottenAfter);
      if (isDropped) await code.delete(address.organizationId, sessionId);
    }
  }

  /** What can be refused without looking at the code; the session can be used again after it. */
  async #refusal(
    address: TaskAddress,
    sessionId: string,
    request: DeployRequest,
    settings: VersionSettings,
  ): Promise<Problem | undefined> {
    const { database, clock, execution, objects, topics } = this.#parts;
    const invalid = requestErrors(sessionId, request);
    if (invalid !== undefined) return invalid;
    const found = await findDeployment(database.query, address, sessionId);
    if (found === undefined || found.changedAt < clock.now() - sessionMilliseconds) {
      const detail = 'The task has no upload with this session id, or it has expired. Call uploadCode again.';
      return problem('CODE_INVALID', detail);
    }
    if (found.status !== 'UPLOAD') return problem('SESSION_USED');
    const missing = execution.refusal ?? execution.missing(settings.runtime);
    if (missing !== undefined) return problem('RUNTIME_MISSING', missing);
    const document = await topics.get(address.organizationId);
    const cycle = await cycleOf(database.query, document, address, settings);
    if (cycle !== undefined) return problem('TASK_CYCLE', cycle);
    if ((await objects.head(codeKey(address.organizationId, sessionId))) === undefined) {
      return problem(
        'CODE_INVALID',
        'Nothing was uploaded yet: send the zip to presignedUrl with PUT first.',
      );
    }
    return undefined;
  }
}

function codeUrlOf(sessionId: string): string {
  return `code:${sessionId}`;
}

export function crowded(): Problem {
  const detail = 'Too many changes of this task are waiting. Try again in a moment.';
  return problem('OVERLOADED', detail, { retryAfterSeconds: 5 });
}

function requestErrors(sessionId: string, request: DeployRequest): Problem | undefined {
  const errors = [];
  if (request.codeUrl !== codeUrlOf(sessionId)) {
    errors.push({
      pointer: '/codeUrl',
      message: 'must be the codeUrl that uploadCode gave with this session',
    });
  }
  for (const name of Object.keys(request.environment ?? {})) {
    if (reservedNames.test(name)) {
      errors.push({ pointer: `/environment/${name}`, message: 'is a name that the service sets itself' });
    }
  }
  const [first] = errors;
  if (first === undefined) return undefined;
  return problem('VALIDATION_FAILED', `The deployment is not valid: ${first.pointer} ${first.message}.`, {
    errors,
  });
}

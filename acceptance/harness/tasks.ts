import assert from 'node:assert/strict';
import type { BodyOf, Operations, ProblemCode } from '@millrace/contract';
import { zipOf } from '../zip.ts';
import { call } from './client.ts';
import { newOrganization, type Person } from './people.ts';
import type { Publisher } from './publisher.ts';
import type { RunningService } from './service.ts';
import { eventually } from './waiting.ts';

export type DeployBody = BodyOf<Operations['deployVersion']>;
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Whoever deploys, and where. */
export type Deployer = Publisher;

const usual: Omit<DeployBody, 'codeUrl'> = {
  handler: 'index.handler',
  inputQueueNames: [],
  outputQueueNames: [],
  switchToNow: true,
  runtime: 'NODEJS26_X',
};

/** Asks for a place to upload to. */
export async function openSession({ url, token, organizationName }: Deployer, taskId: string, bytes: number) {
  const body = { taskId, contentLengthBytes: bytes };
  const made = await call(url, 'uploadCode', { token, path: { organizationName }, body });
  assert.equal(made.status, 200, made.text);
  return made.body;
}

/** Sends bytes to the place that was given for them. */
export function put(presignedUrl: string, bytes: Uint8Array): Promise<Response> {
  return fetch(presignedUrl, { method: 'PUT', body: new Uint8Array(bytes) });
}

export async function upload(deployer: Deployer, taskId: string, code: Files | Uint8Array) {
  const bytes = code instanceof Uint8Array ? code : zipOf(code);
  const session = await openSession(deployer, taskId, bytes.length);
  const sent = await put(session.presignedUrl, bytes);
  assert.ok(sent.ok, `the upload is taken: ${sent.status} ${await sent.text()}`);
  return session;
}

/** Uploads and deploys code, and answers what deployVersion does. */
export async function deploy(
  deployer: Deployer,
  taskId: string,
  code: Files | Uint8Array,
  more: Partial<DeployBody> = {},
  invocationType = 'RequestResponse',
) {
  const { sessionId, codeUrl } = await upload(deployer, taskId, code);
  const { url, token, organizationName } = deployer;
  const answer = await call(url, 'deployVersion', {
    token,
    path: { organizationName, taskId, sessionId },
    headers: { InvocationType: invocationType },
    body: { ...usual, codeUrl, ...more },
  });
  return { answer, sessionId, codeUrl };
}

/** The same where it must succeed; answers the version. */
export async function deployed(
  deployer: Deployer,
  taskId: string,
  code: Files | Uint8Array,
  more: Partial<DeployBody> = {},
): Promise<string> {
  const { answer } = await deploy(deployer, taskId, code, more);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.version;
}

/** What is answered about a task: how it is, or why not. */
export interface TaskBody {
  readonly taskId?: string;
  readonly status?: string | number;
  readonly version?: string;
  readonly lastUpdateStatus?: string;
  readonly lastUpdateStatusReason?: string;
  readonly endpointUrl?: string;
  readonly code?: ProblemCode;
}

/** Calls an operation that answers how a task is. The contract holds for the answer as for every other. */
export async function onTask(
  { url, token, organizationName }: Deployer,
  id: 'activateVersion' | 'pause' | 'resume' | 'delete' | 'status',
  taskId: string,
  version?: string,
): Promise<{ status: number; body: TaskBody }> {
  const query = version === undefined ? {} : { version };
  const answer = await call(url, id, { token, path: { organizationName, taskId }, query });
  // A problem has a status as well, of another type, so the two have to be told apart by the reader.
  const body: TaskBody = JSON.parse(answer.text);
  return { status: answer.status, body };
}

/** How a deployment went. */
export interface CheckBody {
  readonly status: 'PROCESSING' | 'SUCCESS' | 'NOTFOUND' | 'FAILED';
  readonly errorStr?: string;
}

export async function checkDeployment(
  { url, token, organizationName }: Deployer,
  taskId: string,
  sessionId: string,
): Promise<CheckBody> {
  const path = { organizationName, taskId, sessionId };
  const answer = await call(url, 'deployVersionCheck', { token, path });
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text);
}

/** What a task printed, as one page of it. */
export async function taskLogs(
  { url, token, organizationName }: Deployer,
  taskId: string,
  query: Readonly<Record<string, string>> = {},
) {
  const answer = await call(url, 'taskLogs', { token, path: { organizationName, taskId }, query });
  assert.ok('lines' in answer.body, answer.text);
  return answer.body;
}

/** Waits until the task is as wanted, and answers how it is. */
export function untilTask(
  deployer: Deployer,
  taskId: string,
  what: string,
  holds: (task: TaskBody) => boolean,
): Promise<TaskBody> {
  return eventually(`${taskId} ${what}`, 20_000, async () => {
    const { body } = await onTask(deployer, 'status', taskId);
    return holds(body) ? body : undefined;
  });
}

/** The messages that a task gave up on. */
export async function deadLetters({ url, token, organizationName }: Deployer, taskId: string) {
  const answer = await call(url, 'listDeadLetters', { token, path: { organizationName, taskId } });
  assert.equal(answer.status, 200, answer.text);
  return answer.body.entries;
}

/** Waits until the state under a key is as wanted. */
export function untilState(deployer: Deployer, keyParts: string[], attribute: string, value: unknown) {
  return eventually(`${keyParts.join(':')} has ${attribute} ${value}`, 60_000, async () =>
    (await state(deployer, keyParts))?.[attribute] === value ? true : undefined,
  );
}

/** A person with an organization of its own, so that the streams of tests do not meet. */
export async function newDeployer(service: RunningService, person: Person): Promise<Deployer> {
  const organizationName = await newOrganization(service, person);
  return { url: service.url, token: person.accessToken, organizationName };
}

/** Code that calls the service from inside a task with the key of the task. */
export const client = `
const { MILLRACE_ENDPOINT: endpoint, MILLRACE_API_KEY: key, MILLRACE_ORGANIZATION: organization } = process.env;
export async function call(path, body) {
  const response = await fetch(endpoint + '/v1/organization/' + organization + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: 'Bearer ' + key, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}
`;

/** Counts each message of a stream once, by its id. */
export const counter = {
  'client.mjs': client,
  'index.mjs': `
import { call } from './client.mjs';
export async function handler({ Records }) {
  for (const { messageId } of Records) {
    const seen = await call('/state/upsert', { keyParts: ['seen', messageId], attributes: {}, expectedVersion: 0 });
    if (seen.status === 409) continue;
    const answer = await call('/state/increment', { keyParts: ['count'], attribute: 'n' });
    if (answer.status !== 200) throw new Error(answer.text);
  }
}
`,
};

export const echo = { 'index.mjs': 'export const handler = async (event) => event;' };

export function invoke({ url, token, organizationName }: Deployer, taskId: string, event: unknown) {
  return call(url, 'invoke', { token, path: { organizationName, taskId }, body: { event } });
}

export async function state({ url, token, organizationName }: Deployer, keyParts: string[]) {
  const answer = await call(url, 'getState', { token, path: { organizationName }, body: { keyParts } });
  return answer.status === 200 ? answer.body.attributes : undefined;
}

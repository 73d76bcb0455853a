import { Agent, request } from 'node:http';
import type { Operation } from '@millrace/contract';
import { type Answer, address } from './client.ts';
import { fresh } from './people.ts';

const answerMilliseconds = 15_000;
const connections = new Agent({ keepAlive: true, maxSockets: 64 });

/** A request as it goes over the wire: nothing in it is normalised on the way. */
export interface WireRequest {
  readonly method: string;
  /** The path and query, sent as they are. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: Uint8Array | string | undefined;
  /** Sends the body in chunks, without saying how long it is. */
  readonly chunked?: boolean;
  /** Says how long the body is and waits for the answer without sending it. */
  readonly withheld?: boolean;
}

/** Sends a request and reads the answer. An endless answer is let go once its headers are here. */
export function send(url: string, wire: WireRequest): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const headers: Record<string, string | string[]> = { ...wire.headers };
  if (wire.chunked) headers['transfer-encoding'] = 'chunked';
  else if (wire.body !== undefined) headers['content-length'] = String(Buffer.byteLength(wire.body));
  return new Promise((resolve, reject) => {
    const outgoing = request({
      hostname,
      port,
      method: wire.method,
      path: wire.target,
      headers,
      agent: connections,
      signal: AbortSignal.timeout(answerMilliseconds),
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const received = new Headers();
      for (let index = 0; index + 1 < incoming.rawHeaders.length; index += 2) {
        received.append(incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? '');
      }
      const type = received.get('content-type') ?? '';
      const finish = (text: string) => {
        const body = /json/.test(type) && text !== '' ? JSON.parse(text) : undefined;
        resolve({ status: incoming.statusCode ?? 0, headers: received, body, text });
      };
      if (type.startsWith('text/event-stream')) {
        finish('');
        outgoing.destroy();
        return;
      }
      const pieces: Buffer[] = [];
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        finish(Buffer.concat(pieces).toString('utf8'));
        if (wire.withheld) outgoing.destroy();
      });
      incoming.on('error', reject);
    });
    if (wire.withheld) outgoing.flushHeaders();
    else outgoing.end(wire.body);
  });
}

/** The parts of a request to an operation before they are put together. */
export interface Parts {
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Where a request goes, besides what the example of its operation says. */
export interface Place {
  readonly organizationName: string;
  readonly topicName: string;
}

/** A valid request to an operation, made from its example, in an organization of ours. */
export function exampleParts(operation: Operation, place: Place): Parts {
  const { example } = operation;
  const path = { ...example.path };
  if ('organizationName' in path) path.organizationName = place.organizationName;
  if ('topicName' in path) path.topicName = place.topicName;
  const query = Object.entries(example.query ?? {}).map(([name, value]) => [name, String(value)]);
  return {
    path,
    query: Object.fromEntries(query),
    headers: { ...example.headers },
    body: operation.body === undefined ? undefined : (example.body ?? ''),
  };
}

/** What must differ from the example so that a request that is let through changes nothing others rely on. */
const harmless: Readonly<Record<string, (parts: Parts) => Partial<Parts>>> = {
  signUp: ({ body }) => ({ body: { ...objectOf(body), username: fresh('nobody'), tosAgreed: false } }),
  signUpConfirmCode: withUnknownPerson('username'),
  signIn: withUnknownPerson('usernameOrEmail'),
  signInChallengeTotpCode: withUnknownPerson('username'),
  signInChallengePasswordChange: withUnknownPerson('username'),
  passwordForgot: withUnknownPerson('usernameOrEmail'),
  passwordReset: withUnknownPerson('usernameOrEmail'),
  passwordChange: ({ body }) => ({ body: { ...objectOf(body), currentPassword: 'not the right one' } }),
  totpConfirm: () => ({ body: { code: 'not a code' } }),
  createOrganization: () => ({ query: { organizationName: fresh('spare') } }),
  inviteToOrganization: () => ({ query: { email: `${fresh('nobody')}@example.com` } }),
  setMemberRole: ({ path }) => ({ path: { ...path, username: fresh('nobody') } }),
  removeMember: ({ path }) => ({ path: { ...path, username: fresh('nobody') } }),
  rateLimitAdjust: () => ({ query: { level: 'DEFAULT' } }),
};

/** A valid request to an operation that does no harm, even from a caller who may do everything. */
export function harmlessParts(operation: Operation, place: Place): Parts {
  const parts = exampleParts(operation, place);
  return { ...parts, ...harmless[operation.id]?.(parts) };
}

function withUnknownPerson(field: string) {
  return ({ body }: Parts) => ({ body: { ...objectOf(body), [field]: fresh('nobody') } });
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** Puts the parts together. A body that is text or bytes goes as it is, any other as JSON. */
export function wireRequest(operation: Operation, parts: Parts, authorization?: string): WireRequest {
  const { body } = parts;
  const ready = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  return {
    method: methodOf(operation),
    target: address(operation, parts.path, parts.query),
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(authorization === undefined ? {} : { authorization }),
      ...parts.headers,
    },
    ...(body === undefined ? {} : { body: ready ? body : JSON.stringify(body) }),
  };
}

/** The method to call an operation with; one of them where it takes any. */
export function methodOf(operation: Operation): string {
  return operation.method === 'ANY' ? 'POST' : operation.method;
}

/** Does the work for every item, some at a time. */
export async function forEach<Item>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

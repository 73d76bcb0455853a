import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type Access,
  applicableProblems,
  listOperations,
  type Operation,
  type ProblemCode,
  type Role,
} from '@millrace/contract';
import { type Caller, makeBriefCallers, makeCallers, type Standing, topicName } from './harness/callers.ts';
import { type Answer, checkAnswer, contract } from './harness/client.ts';
import { fresh, newPerson } from './harness/people.ts';
import { forEach, harmlessParts, send, type WireRequest, wireRequest } from './harness/requests.ts';
import { type RunningService, startService } from './harness/service.ts';

const operations = listOperations(contract);
const width = 16;

/** The codes that say that a caller may not. Any other answer means that the caller was let through. */
const refusals: readonly ProblemCode[] = [
  'CREDENTIAL_MISSING',
  'CREDENTIAL_INVALID',
  'ORGANIZATION_NOT_FOUND',
  'ROLE_TOO_LOW',
  'KEY_RESTRICTED',
  'SESSION_REQUIRED',
];

type Verdict = ProblemCode | 'let through';

/** Who may call what, worked out anew from the rules in words: it shares nothing with the service. */
function verdict(given: Access, standing: Standing): Verdict {
  // There is no task of the name that is asked for, and that is for members to know.
  const access: Access = given.kind === 'deployment' ? { kind: 'organization', role: 'VIEWER' } : given;
  if (access.kind === 'public') return 'let through';
  if (standing.credential === 'none') return 'CREDENTIAL_MISSING';
  if (standing.credential === 'bad') return 'CREDENTIAL_INVALID';
  if (access.kind === 'account') {
    if (standing.credential === 'session') return 'let through';
    if (!access.apiKey) return 'SESSION_REQUIRED';
    return standing.credential === 'task' || standing.whitelist ? 'KEY_RESTRICTED' : 'let through';
  }
  if (standing.credential === 'task') {
    const allowed =
      access.taskKey === 'state' || (access.taskKey === 'outputs' && standing.outputs.includes(topicName));
    return allowed ? 'let through' : 'KEY_RESTRICTED';
  }
  if (standing.role === undefined) return 'ORGANIZATION_NOT_FOUND';
  const isKey = standing.credential === 'key';
  if (isKey && standing.whitelist !== undefined) {
    if (!access.restrictedKey || !standing.whitelist.includes(topicName)) return 'KEY_RESTRICTED';
  }
  const height: Record<Role, number> = { VIEWER: 1, MEMBER: 2, ADMIN: 3 };
  const most = isKey && access.apiKeyRole !== undefined ? height[access.apiKeyRole] : 3;
  return Math.min(height[standing.role], most) >= height[access.role] ? 'let through' : 'ROLE_TOO_LOW';
}

/** What is wrong with an answer, or undefined. */
function complaint(operation: Operation, expected: Verdict, answer: Answer): string | undefined {
  const given = `${answer.status} ${answer.body?.code ?? ''}`;
  try {
    checkAnswer(operation, answer);
  } catch (error) {
    return `answers against the contract: ${error instanceof Error ? error.message : error}`;
  }
  if (answer.status >= 500) return `answers ${given}`;
  if (answer.status >= 400) {
    const { code } = answer.body;
    if (!applicableProblems(operation).includes(code)) {
      return `answers ${given}, which is no problem of the operation`;
    }
  }
  const code = answer.status >= 400 ? answer.body.code : undefined;
  const refused = refusals.find((refusal) => refusal === code) ?? 'let through';
  return refused === expected ? undefined : `answers ${given} instead of: ${expected}`;
}

describe('who may call what', () => {
  let service: RunningService;
  let brief: RunningService;
  let callers: Caller[];
  let cells = 0;

  before(async () => {
    [service, brief] = await Promise.all([
      startService(),
      startService({ environment: { MILLRACE_ACCESS_TOKEN_SECONDS: '1' } }),
    ]);
    const made = await Promise.all([makeCallers(service), makeBriefCallers(brief, await newPerson(service))]);
    callers = made.flat();
  });
  after(() => Promise.all([service.remove(), brief.remove()]));

  function namedIn(list: readonly Caller[], name: string): Caller {
    const caller = list.find((each) => each.name === name);
    assert.ok(caller, `there is a caller "${name}"`);
    return caller;
  }

  function requestOf(operation: Operation, caller: Caller): WireRequest {
    const { organizationName, authorization } = caller;
    return wireRequest(operation, harmlessParts(operation, { organizationName, topicName }), authorization);
  }

  /** Calls every given operation as every given caller and lists what is not as expected. */
  async function complaints(
    list: readonly Operation[],
    as: readonly Caller[],
    change: (wire: WireRequest) => WireRequest = (wire) => wire,
  ): Promise<string[]> {
    const found: string[] = [];
    const pairs = as.flatMap((caller) => list.map((operation) => ({ caller, operation })));
    await forEach(pairs, width, async ({ caller, operation }) => {
      const answer = await send(caller.service.url, change(requestOf(operation, caller)));
      const wrong = complaint(operation, verdict(operation.access, caller.standing), answer);
      if (wrong !== undefined) found.push(`${operation.id} as ${caller.name} ${wrong}`);
      cells += 1;
    });
    return found;
  }

  it('is as the contract says for every operation and every kind of caller', async (t) => {
    const wrong = await complaints(operations, callers);
    assert.equal(cells, operations.length * callers.length);
    const line = `access table: ${operations.length} operations x ${callers.length} callers = ${cells} cells`;
    t.diagnostic(line);
    console.log(line);
    assert.deepEqual(wrong, []);
  });

  it('is decided before anything else in the request is looked at', async () => {
    const refused = [
      'nobody',
      'a member of another organization',
      'a viewer',
      'a restricted key for the topic',
    ];
    const guarded = refused.map((name) => namedIn(callers, name));
    const spoilt = (wire: WireRequest): WireRequest => ({
      ...wire,
      target: `${wire.target}${wire.target.includes('?') ? '&' : '?'}unknown=1`,
      headers: { ...wire.headers, 'content-type': 'text/plain' },
      body: '{',
    });
    const wrong: string[] = [];
    for (const caller of guarded) {
      const list = operations.filter(({ access }) =>
        refusals.some((refusal) => refusal === verdict(access, caller.standing)),
      );
      wrong.push(...(await complaints(list, [caller], spoilt)));
    }
    assert.deepEqual(wrong, []);
  });

  it('is the same with a trailing slash and for HEAD', async () => {
    const outside = ['nobody', 'a member of another organization', 'a restricted key for other topics'];
    const guarded = outside.map((name) => namedIn(callers, name));
    const slashed = (wire: WireRequest): WireRequest => {
      const [path = '', query] = wire.target.split('?');
      const turned = path.endsWith('/') ? path.slice(0, -1) : `${path}/`;
      return { ...wire, target: query === undefined ? turned : `${turned}?${query}` };
    };
    assert.deepEqual(await complaints(operations, guarded, slashed), []);

    const readable = operations.filter(({ method }) => method === 'GET');
    const pairs = guarded.flatMap((caller) => readable.map((operation) => ({ caller, operation })));
    const wrong: string[] = [];
    await forEach(pairs, width, async ({ caller, operation }) => {
      const wire = requestOf(operation, caller);
      const whole = await send(caller.service.url, wire);
      const head = await send(caller.service.url, { ...wire, method: 'HEAD' });
      if (head.status !== whole.status || head.text !== '') {
        wrong.push(`HEAD ${operation.id} as ${caller.name}: ${head.status} instead of ${whole.status}`);
      }
    });
    assert.deepEqual(wrong, []);
  });

  it('tells those outside nothing: an organization of others answers as one that does not exist', async () => {
    const outsiders = callers.filter(({ standing }) => 'role' in standing && standing.role === undefined);
    const inside = operations.filter(({ path }) => path.includes('{organizationName}'));
    const pairs = outsiders.flatMap((caller) => inside.map((operation) => ({ caller, operation })));
    assert.ok(pairs.length > 0);
    const wrong: string[] = [];
    await forEach(pairs, width, async ({ caller, operation }) => {
      const ask = async (organizationName: string) => {
        const wire = requestOf(operation, { ...caller, organizationName });
        // The request id is the caller's to choose: with the same one nothing at all may differ.
        const headers = { ...wire.headers, 'x-request-id': 'the-same-for-both' };
        const { status, headers: received, text } = await send(service.url, { ...wire, headers });
        return { status, headers: [...received].filter(([name]) => name !== 'date'), text };
      };
      const [others, missing] = [await ask(caller.organizationName), await ask(fresh('missing'))];
      try {
        assert.deepEqual(others, missing);
        if (operation.access.kind === 'organization') assert.equal(others.status, 404);
      } catch {
        wrong.push(`${operation.id} as ${caller.name}: ${others.text} and ${missing.text}`);
      }
    });
    assert.deepEqual(wrong, []);
  });

  it('leaves nothing behind that the service calls an error', () => {
    for (const { output } of [service, brief]) assert.doesNotMatch(output().stderr, /"level":"error"/);
  });
});

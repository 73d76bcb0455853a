import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { listOperations, type Operation } from '@millrace/contract';
import { Compile } from 'typebox/compile';
import { documentFaults, mediaTypeFaults, sizeFaults, unexpectedBodies } from './harness/body-faults.ts';
import { type Answer, call, checkProblem, contract } from './harness/client.ts';
import { newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { randomRequests, seededRandom } from './harness/random-requests.ts';
import {
  type FaultyRequest,
  fieldFaults,
  headerFaults,
  pathFaults,
  queryFaults,
  type ValidRequest,
  validRequest,
  wireOf,
} from './harness/request-faults.ts';
import { forEach, send } from './harness/requests.ts';
import { type RunningService, startService } from './harness/service.ts';

const operations = listOperations(contract);
const width = 16;

/** What is wrong with the answer to a faulty request, or undefined. */
function complaint(fault: FaultyRequest, answer: Answer): string | undefined {
  const given = `${answer.status} ${answer.text.slice(0, 200)}`;
  try {
    checkProblem(answer);
  } catch (error) {
    return `answers no good problem (${error instanceof Error ? error.message.split('\n')[0] : error}): ${given}`;
  }
  const { code, errors, detail } = answer.body;
  if (!fault.codes.includes(code)) return `answers ${given} instead of ${fault.codes.join(' or ')}`;
  if (fault.detail !== undefined && !detail.includes(fault.detail)) {
    return `does not say ${fault.detail}: ${given}`;
  }
  if (fault.pointer === undefined) return undefined;
  const pointers = errors?.map(({ pointer }) => pointer).join(' ');
  return pointers === fault.pointer ? undefined : `points at "${pointers}" instead of "${fault.pointer}"`;
}

/** A list that a person can still read. */
function summary(found: readonly string[]): string[] {
  const most = 25;
  return found.length <= most ? [...found] : [...found.slice(0, most), `and ${found.length - most} more`];
}

describe('bad input', () => {
  let service: RunningService;
  let admin: Person;
  let organizationName: string;
  let count = 0;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
    organizationName = await newOrganization(service, admin);
  });
  after(() => service.remove());

  function validOf(operation: Operation): ValidRequest {
    return validRequest(operation, organizationName, `Bearer ${admin.accessToken}`);
  }

  async function complaints(faultsOf: (valid: ValidRequest) => FaultyRequest[]): Promise<string[]> {
    const found: string[] = [];
    const faults = operations.flatMap((operation) =>
      faultsOf(validOf(operation)).map((fault) => ({ operation, fault })),
    );
    assert.ok(faults.length > 0);
    await forEach(faults, width, async ({ operation, fault }) => {
      const answer = await send(service.url, fault.wire).catch((error: Error) => error);
      const wrong = answer instanceof Error ? `gets no answer: ${answer.message}` : complaint(fault, answer);
      if (wrong !== undefined) found.push(`${operation.id}: ${fault.what} ${wrong}`);
    });
    count += faults.length;
    return summary(found);
  }

  it('is made from requests that are valid', () => {
    for (const operation of operations) {
      const valid = validOf(operation);
      const { path, query, headers } = operation.parameters ?? {};
      const { body } = operation;
      if (path) assert.deepEqual(Compile(path).Errors(valid.path), [], operation.id);
      if (query && Object.keys(valid.query).length === 0) assert.ok(Compile(query).Check({}), operation.id);
      if (headers) {
        const { authorization: _credential, 'content-type': _type, ...declared } = valid.headers;
        assert.deepEqual(Compile(headers).Errors(declared), [], operation.id);
      }
      if (body && 'schema' in body) {
        assert.deepEqual(Compile(body.schema).Errors(JSON.parse(valid.body ?? '')), [], operation.id);
      }
    }
  });

  it('in a field of the body is refused with a pointer to the field', async () => {
    assert.deepEqual(await complaints(fieldFaults), []);
  });

  it('that is no JSON document, or none of the kind, is refused', async () => {
    assert.deepEqual(await complaints(documentFaults), []);
  });

  it('of another media type is refused with the ones that are taken', async () => {
    assert.deepEqual(await complaints(mediaTypeFaults), []);
  });

  it('over the limit is refused with the limit', async () => {
    assert.deepEqual(await complaints(sizeFaults), []);
  });

  it('where no body is expected is refused', async () => {
    assert.deepEqual(await complaints(unexpectedBodies), []);
  });

  it('in the query is refused with a pointer to the parameter', async () => {
    assert.deepEqual(await complaints(queryFaults), []);
  });

  it('in the path is refused with a pointer to the name', async () => {
    assert.deepEqual(await complaints(pathFaults), []);
  });

  it('in a header is refused with a pointer to the header', async () => {
    const withHeaders = operations.filter(({ parameters }) => parameters?.headers !== undefined);
    assert.ok(withHeaders.length > 0);
    assert.deepEqual(await complaints(headerFaults), []);
  });

  it('that is deep and allowed to be is no fault of the service', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const bodies = [
      [contract.operations.invoke, `{"event":${deep}}`],
      [contract.operations.upsertState, `{"keyParts":["a"],"attributes":{"deep":${deep}}}`],
    ] as const;
    for (const [operation, body] of bodies) {
      const answer = await send(service.url, wireOf(validOf(operation), { body }));
      assert.ok(answer.status < 500, `${operation.id} answers ${answer.status}`);
    }
  });

  it('leaves the service as it was', async (t) => {
    const line = `bad input: ${count} faulty requests to ${operations.length} operations`;
    t.diagnostic(line);
    console.log(line);
    assert.equal((await call(service.url, 'ping')).status, 200);
    assert.doesNotMatch(service.output().stderr, /"level":"error"/);
  });
});

const randomCount = 2000;

describe('random requests', () => {
  let service: RunningService;
  let organizationName: string;
  let authorizations: string[];
  before(async () => {
    service = await startService();
    const admin = await newPerson(service);
    organizationName = await newOrganization(service, admin);
    const { secret } = await newApiKey(service, admin.accessToken, organizationName);
    const session = `Bearer ${admin.accessToken}`;
    // Mostly good ones, or nearly everything would end at the door.
    const good = [...Array<string>(12).fill(session), `apikey ${secret}`, `Bearer ${secret}`];
    authorizations = [...good, 'Bearer x', 'Basic eDp5', '', 'Bearer'];
  });
  after(() => service.remove());

  it('are answered, never with a fault, and what is refused is a problem', async (t) => {
    const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
    const line = `random requests: ${randomCount} with FUZZ_SEED=${seed}`;
    t.diagnostic(line);
    console.log(line);
    const organizationNames = [organizationName, organizationName, organizationName.toUpperCase(), 'nobodys'];
    const next = randomRequests({ operations, organizationNames, authorizations }, seededRandom(seed));
    const statuses = new Map<number, number>();
    const found: string[] = [];
    await forEach(Array.from({ length: randomCount }, next), width, async (wire) => {
      const answer = await send(service.url, wire).catch((error: Error) => error);
      const wrong =
        answer instanceof Error ? `gets no answer: ${answer.message}` : fault(wire.method, answer);
      if (wrong !== undefined) found.push(`${wire.method} ${wire.target.slice(0, 300)} ${wrong}`);
      if (!(answer instanceof Error)) statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    });
    const counted = [...statuses]
      .sort(([one], [other]) => one - other)
      .map(([status, n]) => `${status}: ${n}`);
    t.diagnostic(`statuses: ${counted.join(', ')}`);
    assert.deepEqual(summary(found), []);
    assert.ok(statuses.has(200) && statuses.has(400) && statuses.has(401) && statuses.has(404));
    assert.equal((await call(service.url, 'ping')).status, 200);
    assert.doesNotMatch(service.output().stderr, /"level":"error"/);
  });

  function fault(method: string, answer: Answer): string | undefined {
    const given = `${answer.status} ${answer.text.slice(0, 200)}`;
    if (answer.status >= 500) return `answers ${given}`;
    if (answer.status < 400) return undefined;
    try {
      if (method === 'HEAD')
        assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
      else checkProblem(answer);
      return undefined;
    } catch (error) {
      return `answers no good problem (${error instanceof Error ? error.message : error}): ${given}`;
    }
  }
});

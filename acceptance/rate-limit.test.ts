import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { listOperations, type RateLimitLevelName } from '@millrace/contract';
import { type Answer, address, call, checkProblem, contract, read } from './harness/client.ts';
import { join, newApiKey, newOrganization, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

/** What an answer says of the limit: the whole burst, its window, what is left and until when. */
function limitOf(answer: Answer): { quota: number; window: number; remaining: number; reset: number } {
  const policy = /^"organization";q=(\d+);w=(\d+)$/.exec(answer.headers.get('ratelimit-policy') ?? '');
  const state = /^"organization";r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit') ?? '');
  assert.ok(policy, `RateLimit-Policy: ${answer.headers.get('ratelimit-policy')} on ${answer.status}`);
  assert.ok(state, `RateLimit: ${answer.headers.get('ratelimit')} on ${answer.status}`);
  return {
    quota: Number(policy[1]),
    window: Number(policy[2]),
    remaining: Number(state[1]),
    reset: Number(state[2]),
  };
}

function checkRefusal(answer: Answer): void {
  assert.equal(answer.status, 429);
  checkProblem(answer);
  assert.equal(answer.body.code, 'RATE_LIMITED');
  assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.ok(Number(answer.headers.get('retry-after')) <= 10);
  assert.equal(limitOf(answer).remaining, 0);
}

describe('the rate limit of an organization', { concurrency: true }, () => {
  let service: RunningService;
  let admin: Person;
  let outsider: Person;
  before(async () => {
    service = await startService();
    admin = await newPerson(service);
    outsider = await newPerson(service);
  });
  after(() => service.remove());

  const ask = (organizationName: string, token = admin.accessToken) =>
    call(service.url, 'rateLimitGet', { token, path: { organizationName } });

  async function adjust(organizationName: string, level: RateLimitLevelName): Promise<void> {
    const request = { token: admin.accessToken, path: { organizationName }, query: { level } };
    // At its limit an organization has to wait for its turn with this, too.
    await eventually(`the level ${level}`, 5000, async () => {
      const answer = await call(service.url, 'rateLimitAdjust', request);
      return answer.status === 200 ? true : undefined;
    });
  }

  async function organizationAt(level: RateLimitLevelName): Promise<string> {
    const organizationName = await newOrganization(service, admin);
    await adjust(organizationName, level);
    return organizationName;
  }

  async function useUp(
    organizationName: string,
    most: number,
  ): Promise<{ allowed: number; refusal: Answer }> {
    for (let allowed = 0; allowed <= most; allowed += 1) {
      const answer = await ask(organizationName);
      if (answer.status !== 200) return { allowed, refusal: answer };
      assert.ok(limitOf(answer).remaining <= limitOf(answer).quota);
    }
    return assert.fail(`${most} requests were not limited`);
  }

  for (const [level, perSecond] of [
    ['ONE', 1],
    ['TEN', 10],
  ] as const) {
    it(`allows a burst of ten seconds' worth at ${level}, then refuses, then goes on at its rate`, async () => {
      const organizationName = await organizationAt(level);
      const began = performance.now();
      const { allowed, refusal } = await useUp(organizationName, perSecond * 10 + perSecond * 30);
      const most = perSecond * 10 + Math.ceil(((performance.now() - began) / 1000) * perSecond) + 1;
      assert.ok(allowed >= perSecond * 10 - 1 && allowed <= most, `${allowed} were allowed, not ${most}`);
      checkRefusal(refusal);
      const { quota, window, reset } = limitOf(refusal);
      assert.deepEqual([quota, window], [perSecond * 10, 10]);
      assert.ok(reset >= 9 && reset <= 11, `full again in ${reset} s`);
      const waited = Number(refusal.headers.get('retry-after')) * 1000;
      await eventually('the next turn', waited + 2000, async () =>
        (await ask(organizationName)).status === 200 ? true : undefined,
      );
    });
  }

  it('holds for many at once, whoever of the organization they are', async () => {
    const member = await newPerson(service);
    const organizationName = await newOrganization(service, admin);
    await join(service, admin, organizationName, member, 'MEMBER');
    const key = await newApiKey(service, member.accessToken, organizationName);
    await adjust(organizationName, 'ONE');
    const began = performance.now();
    const tokens = [admin.accessToken, member.accessToken, key.secret];
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_each, at) => ask(organizationName, tokens[at % 3])),
    );
    const allowed = answers.filter((answer) => answer.status === 200).length;
    const most = 10 + Math.ceil((performance.now() - began) / 1000);
    assert.ok(allowed >= 9 && allowed <= most, `${allowed} of 60 were allowed, not ${most}`);
    for (const answer of answers) if (answer.status !== 200) checkRefusal(answer);
  });

  it('is told on every answer of every path of an organization, errors too', async () => {
    const organizationName = await newOrganization(service, admin);
    const headers = { authorization: `Bearer ${admin.accessToken}` };
    let count = 0;
    for (const operation of listOperations(contract)) {
      if (operation.access.kind !== 'organization') continue;
      const names = { organizationName, topicName: 'events', taskId: 'task', username: 'nobody' };
      const path = address(operation, { ...names, sessionId: 's', queryExecutionId: 'q', apiKeyId: 'k' });
      for (const query of ['', '?unknown=1']) {
        const response = await fetch(`${service.url}${path}${query}`, { method: operation.method, headers });
        const isEndless = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
        if (isEndless) await response.body?.cancel();
        const answer = await read(isEndless ? new Response('', response) : response);
        assert.notEqual(answer.status, 429, operation.id);
        const { quota, window } = limitOf(answer);
        assert.deepEqual([quota, window], [100_000, 10], operation.id);
        count += 1;
      }
    }
    assert.ok(count > 80);
    const large = await fetch(`${service.url}/v1/organization/${organizationName}/auth/apikey`, {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/json' },
      body: `{"description":"${'x'.repeat(300_000)}"}`,
    });
    assert.equal(large.status, 413);
    limitOf(await read(large));
  });

  it('of one organization at its end leaves the others alone', async () => {
    const [busy, calm] = [await organizationAt('ONE'), await organizationAt('TEN')];
    await useUp(busy, 40);
    for (let count = 0; count < 20; count += 1) assert.equal((await ask(calm)).status, 200);
    assert.equal((await call(service.url, 'whoAmI', { token: admin.accessToken })).status, 200);
  });

  it('is not used up by people outside, who learn nothing of it', async () => {
    const organizationName = await organizationAt('ONE');
    const before = limitOf(await ask(organizationName)).remaining;
    const foreignKey = await newApiKey(
      service,
      outsider.accessToken,
      await newOrganization(service, outsider),
    );
    const tokens = [outsider.accessToken, foreignKey.secret, 'mr_none', `${admin.accessToken}x`, undefined];
    for (const token of tokens) {
      for (let count = 0; count < 12; count += 1) {
        const path = { organizationName };
        const answer = await call(service.url, 'rateLimitGet', { token, path });
        assert.ok([401, 404].includes(answer.status), `${answer.status}`);
        assert.equal(answer.headers.get('ratelimit'), null);
        assert.equal(answer.headers.get('ratelimit-policy'), null);
      }
    }
    const after = await ask(organizationName);
    assert.equal(after.status, 200);
    assert.ok(limitOf(after).remaining >= before - 1);
  });

  it('changes at once with its level, down and up', async () => {
    const organizationName = await newOrganization(service, admin);
    assert.equal(limitOf(await ask(organizationName)).quota, 100_000);
    await adjust(organizationName, 'ONE');
    assert.equal(limitOf(await ask(organizationName)).quota, 10);
    await useUp(organizationName, 40);
    await adjust(organizationName, 'HUNDRED');
    assert.equal(limitOf(await ask(organizationName)).quota, 1000);
    // At the old level this would take half a minute.
    let allowed = 0;
    await eventually('thirty requests at the new rate', 5000, async () => {
      if ((await ask(organizationName)).status === 200) allowed += 1;
      return allowed >= 30 ? true : undefined;
    });
  });
});

describe('a server with another default', () => {
  it('limits organizations at DEFAULT to it, and no others', async () => {
    const service = await startService({ environment: { MILLRACE_RATE_LIMIT_DEFAULT: '3' } });
    try {
      const admin = await newPerson(service);
      const path = { organizationName: await newOrganization(service, admin) };
      const token = admin.accessToken;
      let refused: Answer | undefined;
      for (let count = 0; count < 200 && refused === undefined; count += 1) {
        const answer = await call(service.url, 'rateLimitGet', { token, path });
        assert.deepEqual([limitOf(answer).quota, limitOf(answer).window], [30, 10]);
        if (answer.status !== 200) refused = answer;
        else assert.equal(answer.body, 'DEFAULT');
      }
      assert.ok(refused);
      checkRefusal(refused);
      await eventually('a turn', 3000, async () => {
        const query = { level: 'HUNDRED' } as const;
        const adjusted = await call(service.url, 'rateLimitAdjust', { token, path, query });
        return adjusted.status === 200 ? true : undefined;
      });
      assert.equal(limitOf(await call(service.url, 'rateLimitGet', { token, path })).quota, 1000);
    } finally {
      await service.remove();
    }
  });
});

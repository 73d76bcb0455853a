import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Millrace, MillraceError } from '@millrace/client';
import { codeIn, fresh, lastLetter, password } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';

let service: RunningService;
let visitor: Millrace;
let millrace: Millrace;

before(async () => {
  service = await startService({ environment: { MILLRACE_ACCESS_TOKEN_SECONDS: '3' } });
  visitor = new Millrace({ endpoint: service.url });
  const username = fresh('ada');
  const email = `${username}@example.com`;
  const form = { username, email, password, tosAgreed: true, marketingAgreed: false };
  assert.deepEqual(await visitor.authentication.signUp(form), { codeRequired: { username } });
  const code = codeIn(await lastLetter(service, email));
  assert.deepEqual(await visitor.authentication.confirm({ username, code }), { confirmed: true });
  const { result } = await visitor.authentication.signIn({ usernameOrEmail: username, password });
  assert.ok(result);
  const person = visitor.withSession(result);
  const organization = fresh('acme');
  await person.organizations.create(organization);
  millrace = person.withOrganization(organization);
});

after(async () => {
  await service.remove();
});

describe('the client', () => {
  it('keeps a session alive past the end of its access token', async () => {
    const first = await millrace.authentication.whoAmI();
    await pause(3_200);
    const later = await Promise.all(Array.from({ length: 5 }, () => millrace.authentication.whoAmI()));
    for (const who of later) assert.equal(who.username, first.username);
    await pause(3_200);
    assert.equal(await millrace.organizations.rateLimit(), 'DEFAULT');
  });

  it('makes keys and works with one', async () => {
    const { secret, id } = await millrace.keys.create({ description: 'a test' });
    const program = new Millrace({
      endpoint: service.url,
      apiKey: secret,
      organization: (await millrace.authentication.whoAmI()).organizations[0]?.organizationName,
      retry: { attempts: 1 },
    });
    await program.ping();
    assert.equal((await program.topics.definitions()).version, 0);
    assert.ok((await millrace.keys.list()).some((key) => key.id === id));
    await millrace.keys.revoke(id);
    await assert.rejects(program.topics.definitions(), (error) => {
      assert.ok(error instanceof MillraceError);
      assert.equal(error.status, 401);
      assert.ok(error.requestId !== undefined && error.detail !== '');
      return true;
    });
  });

  it('writes, reads, counts and lists state', async () => {
    assert.equal(await millrace.state.get(['user', '1']), undefined);
    const made = await millrace.state.set(['user', '1'], { visits: 1 }, { expectedVersion: 0 });
    assert.equal(made.version, 1);
    await assert.rejects(millrace.state.set(['user', '1'], {}, { expectedVersion: 0 }), {
      code: 'VERSION_MISMATCH',
    });
    assert.equal((await millrace.state.increment(['user', '1'], 'visits', { by: 2 })).attributes.visits, 3);
    await Promise.all(
      Array.from({ length: 60 }, (_value, index) => millrace.state.set(['many', String(index)], { index })),
    );
    const keys: string[] = [];
    for await (const entry of millrace.state.list(['many'])) keys.push(entry.mergedKey);
    assert.equal(new Set(keys).size, 60);
    const { entries, nextCursor } = await millrace.state.page({ keyPrefix: ['many'], limit: 7 });
    assert.equal(entries.length, 7);
    assert.equal(typeof nextCursor, 'string');
    await millrace.state.delete(['user', '1']);
    assert.equal(await millrace.state.get(['user', '1']), undefined);
  });

  it('publishes one, many and in the background, and tails them', async () => {
    const stop = new AbortController();
    const heard: unknown[] = [];
    const tailing = (async () => {
      for await (const message of millrace.topics.tail('clicks', { signal: stop.signal })) {
        heard.push(message.body);
        if (heard.length === 1) stop.abort();
      }
    })().catch((error: unknown) => {
      assert.ok(stop.signal.aborted, String(error));
    });
    // The tail begins with what is accepted after it was opened, so a first message may come too early.
    for (let tries = 0; heard.length === 0 && tries < 100; tries += 1) {
      await millrace.topics.publish('clicks', { page: '/' }, { key: 'k' });
      await pause(50);
    }
    await tailing;
    assert.deepEqual(heard[0], { page: '/' });
    const again = { key: 'k', id: fresh('m') };
    assert.equal((await millrace.topics.publish('clicks', { a: 1 }, again)).duplicate, false);
    assert.equal((await millrace.topics.publish('clicks', { a: 1 }, again)).duplicate, true);
    const many = await millrace.topics.publishMany('clicks', [{ user: 'u' }, { user: 'v' }], {
      keyPath: '/user',
    });
    assert.equal(many.accepted, 2);
    const publisher = millrace.topics.publisher('clicks', {
      keyPath: '/user',
      batchSize: 100,
      mostPending: 250,
    });
    for (let index = 0; index < 2_500; index += 1) await publisher.publish({ user: `u${index % 7}`, index });
    assert.deepEqual(await publisher.flush(), { accepted: 2_500, duplicates: 0, rejected: 0 });
    await publisher.publish({ nobody: true });
    await assert.rejects(publisher.flush(), MillraceError);
  });

  it('changes topics with versions', async () => {
    const { version } = await millrace.topics.definitions();
    const changed = await millrace.topics.set('orders', { batch: {} }, { expectedVersion: version });
    assert.equal(changed.version, version + 1);
    await assert.rejects(millrace.topics.delete('orders', { expectedVersion: version }), {
      code: 'VERSION_MISMATCH',
    });
    assert.ok(!('orders' in (await millrace.topics.delete('orders')).topics));
  });
});

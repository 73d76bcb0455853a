import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call } from './harness/client.ts';
import { newOrganization, newPerson, type Person } from './harness/people.ts';
import { type RunningService, startService } from './harness/service.ts';
import { eventually } from './harness/waiting.ts';

describe('the keyed store of a topic', () => {
  let service: RunningService;
  let person: Person;
  let organizationName: string;
  before(async () => {
    service = await startService();
    person = await newPerson(service);
    organizationName = await newOrganization(service, person);
  });
  after(() => service.remove());

  const store = {
    keys: [
      { tableType: 'PRIMARY' as const, pkParts: ['user'], rangePrefix: '' },
      {
        tableType: 'GSI' as const,
        indexNumber: 1,
        pkParts: ['country'],
        skParts: ['user'],
        rangePrefix: 'u',
      },
    ],
    ttlInSec: 3600,
  };
  const define = (topicName: string, more: object = {}) =>
    call(service.url, 'updateTopic', {
      token: person.accessToken,
      path: { organizationName, topicName },
      body: { store: { ...store, ...more } },
    });
  const publish = async (topicName: string, messages: readonly object[]) => {
    const lines = messages.map((message) => JSON.stringify(message)).join('\n');
    const url = `${service.url}/v1/organization/${organizationName}/topic/${topicName}/messages?messageKeyPath=/user`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${person.accessToken}`, 'content-type': 'application/x-ndjson' },
      body: lines,
    });
    const answer: unknown = await response.json();
    assert.deepEqual(answer, { accepted: messages.length, duplicates: 0, rejected: 0, errors: [] });
  };
  const get = (keyParts: string[]) =>
    call(service.url, 'getState', {
      token: person.accessToken,
      path: { organizationName },
      body: { keyParts },
    });
  const stored = (keyParts: string[], attributes: object) =>
    eventually(`${keyParts.join(':')} is stored`, 10_000, async () => {
      const answer = await get(keyParts);
      if (answer.status !== 200) return undefined;
      return JSON.stringify(answer.body.attributes) === JSON.stringify(attributes) ? answer : undefined;
    });

  it('holds the last message of each key, under every key of the store, with its time to live', async () => {
    await define('people');
    await publish('people', [
      { user: 'ada', country: 'uk', n: 1 },
      { user: 'grace', country: 'us', n: 1 },
      { user: 'ada', country: 'uk', n: 2 },
    ]);
    const ada = await stored(['people', 'PRIMARY', 'ada'], { user: 'ada', country: 'uk', n: 2 });
    const expires = (ada.body.ttlInEpochSec ?? 0) - Date.now() / 1000;
    assert.ok(expires > 3500 && expires <= 3600);
    await stored(['people', 'GSI1', 'us', 'u', 'grace'], { user: 'grace', country: 'us', n: 1 });
    const listed = await call(service.url, 'listState', {
      token: person.accessToken,
      path: { organizationName },
      body: { keyPrefix: ['people', 'GSI1', 'uk'] },
    });
    assert.deepEqual(
      listed.body.entries.map((entry) => entry.keyParts),
      [['people', 'GSI1', 'uk', 'u', 'ada']],
    );
  });

  it('passes over a message that lacks a key field, and goes on', async () => {
    await define('visits', { whitelist: ['user', 'n'] });
    await publish('visits', [
      { user: 'ada', country: 'uk', n: 1 },
      { user: 'ada', n: 2 },
      { user: 'ada', country: 'uk', n: 3 },
    ]);
    await stored(['visits', 'PRIMARY', 'ada'], { user: 'ada', n: 3 });
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    assert.match(metrics, /millrace_consumers\{kind="store",figure="dead_lettered"\} 1/);
  });

  it('takes up after a crash what it had not stored, and stores a thousand messages of many keys', async () => {
    await define('counters');
    const messages = Array.from({ length: 1000 }, (_value, index) => ({
      user: `u${index % 50}`,
      country: 'nl',
      n: index,
    }));
    await publish('counters', messages);
    const { dataDirectory } = service;
    await service.kill();
    service = await startService({ dataDirectory });
    for (let user = 0; user < 50; user += 1) {
      const last = { user: `u${user}`, country: 'nl', n: 950 + user };
      await stored(['counters', 'PRIMARY', `u${user}`], last);
    }
  });
});

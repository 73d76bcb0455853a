/**
 * Two tasks in a row and what must be true of their work. The first adds a field to each message and
 * publishes it to the topic that the second reads. The second counts the messages of each key in two ways
 * and publishes them to the last topic, every time they come:
 *
 * - `naive`: an increment for each delivery, so at least as many as there are messages;
 * - `exact`: a number with the id of the last message it has counted, both changed in one write that names
 *   the version it was computed from, so exactly as many.
 */
import { call } from '../harness/client.ts';
import { client, type Deployer, deadLetters, deployed } from '../harness/tasks.ts';
import type { StoredMessage } from './ledger.ts';
import type { Message } from './publisher.ts';

export const topics = { first: 'raw', between: 'enriched', last: 'counted' } as const;

const demand = `
import { call } from './client.mjs';
export async function demand(path, body) {
  const answer = await call(path, body);
  if (answer.status !== 200) throw new Error(path + ': ' + answer.status + ' ' + answer.text);
  return JSON.parse(answer.text);
}
export async function publish(topic, query, messages) {
  const answer = await demand('/topic/' + topic + '/messages?messageKeyPath=/key' + query, messages);
  if (answer.rejected > 0) throw new Error(JSON.stringify(answer.errors));
}
`;

const enrich = {
  'client.mjs': client,
  'demand.mjs': demand,
  'index.mjs': `
import { publish } from './demand.mjs';
export async function handler({ Records }) {
  const messages = Records.map(({ body }) => ({ ...JSON.parse(body), country: 'NL' }));
  await publish('${topics.between}', '&messageIdPath=/id', messages);
}
`,
};

const count = {
  'client.mjs': client,
  'demand.mjs': demand,
  'index.mjs': `
import { call } from './client.mjs';
import { demand, publish } from './demand.mjs';
async function read(keyParts) {
  const { status, text } = await call('/state/get', { keyParts });
  if (status === 404) return { version: 0, attributes: { n: 0, last: '' } };
  if (status !== 200) throw new Error(text);
  return JSON.parse(text);
}
async function countKey(key, ids) {
  await demand('/state/increment', { keyParts: ['naive', key], attribute: 'n', by: ids.length });
  const keyParts = ['exact', key];
  const { version, attributes } = await read(keyParts);
  const fresh = ids.filter((id) => id > attributes.last);
  if (fresh.length === 0) return;
  const counted = { n: attributes.n + fresh.length, last: fresh.at(-1) };
  await demand('/state/upsert', { keyParts, attributes: counted, expectedVersion: version });
}
export async function handler({ Records }) {
  const messages = Records.map(({ body }) => JSON.parse(body));
  const keys = Map.groupBy(messages, ({ key }) => key);
  await Promise.all([...keys].map(([key, own]) => countKey(key, own.map(({ id }) => id))));
  await publish('${topics.last}', '', messages);
}
`,
};

/** Deploys both. No message is ever given up, however often it is in the hands of a process that is killed. */
export async function deployChain(deployer: Deployer): Promise<void> {
  const more = { concurrency: 2, maxAttempts: 100, timeoutSec: 60, batchSize: 25 };
  const { first, between, last } = topics;
  await deployed(deployer, 'enrich', enrich, {
    ...more,
    inputQueueNames: [first],
    outputQueueNames: [between],
  });
  await deployed(deployer, 'count', count, {
    ...more,
    inputQueueNames: [between],
    outputQueueNames: [last],
  });
}

/** What the second task has counted, by key. */
export interface Counters {
  readonly naive: ReadonlyMap<string, number>;
  readonly exact: ReadonlyMap<string, number>;
  readonly deadLetters: number;
}

export async function readCounters(deployer: Deployer): Promise<Counters> {
  const letters = [...(await deadLetters(deployer, 'enrich')), ...(await deadLetters(deployer, 'count'))];
  return {
    naive: await countsOf(deployer, 'naive'),
    exact: await countsOf(deployer, 'exact'),
    deadLetters: letters.length,
  };
}

/** How many messages the second task is done with but for the last topic. */
export async function countedBy(deployer: Deployer): Promise<number> {
  return [...(await countsOf(deployer, 'exact')).values()].reduce((sum, n) => sum + n, 0);
}

/** What one way of counting has for each key. */
async function countsOf(
  { url, token, organizationName }: Deployer,
  way: 'naive' | 'exact',
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let cursor: string | undefined;
  do {
    const body = { keyPrefix: [way], limit: 1000, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await call(url, 'listState', { token, path: { organizationName }, body });
    if (answer.status !== 200) throw new Error(answer.text);
    for (const { keyParts, attributes } of answer.body.entries)
      counts.set(keyParts[1] ?? '', Number(attributes.n));
    cursor = answer.body.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return counts;
}

export interface Findings {
  /** What must not be; empty when all is well. */
  readonly violations: readonly string[];
  /** How often a message came to the last topic besides the first time. */
  readonly repeated: number;
  /** By how much the naive counters are too high. */
  readonly overcounted: number;
}

/** Compares what was sent with what the tasks left behind. */
export function examine(
  sent: readonly Message[],
  stored: readonly StoredMessage[],
  counters: Counters,
): Findings {
  const violations: string[] = [];
  if (counters.deadLetters > 0) violations.push(`${counters.deadLetters} dead letters`);
  const expected = Map.groupBy(sent, ({ key }) => key);
  for (const topicName of Object.values(topics)) {
    const firsts = firstsOf(stored.filter((message) => message.topicName === topicName));
    for (const [key, messages] of expected) {
      const ids = firsts.get(key) ?? [];
      const wanted = messages.map(({ id }) => id);
      if (ids.join() !== wanted.join()) violations.push(`${topicName}, ${key}: ${differenceOf(ids, wanted)}`);
      firsts.delete(key);
    }
    for (const key of firsts.keys()) violations.push(`${topicName} has the key ${key}, which nobody sent`);
  }
  let overcounted = 0;
  for (const [key, { length }] of expected) {
    const naive = counters.naive.get(key) ?? 0;
    overcounted += naive - length;
    if (naive < length) violations.push(`${key}: counted ${naive} naively, at least ${length} expected`);
    const exact = counters.exact.get(key) ?? 0;
    if (exact !== length) violations.push(`${key}: counted ${exact} by id, exactly ${length} expected`);
  }
  const arrived = stored.filter(({ topicName }) => topicName === topics.last).length;
  return { violations, repeated: arrived - sent.length, overcounted };
}

/** The ids of each key in the order in which they came for the first time. */
function firstsOf(messages: readonly StoredMessage[]): Map<string, string[]> {
  const ids = new Map<string, Set<string>>();
  for (const { key, text } of messages) {
    const { id }: { id: string } = JSON.parse(text);
    const own = ids.get(key) ?? new Set();
    ids.set(key, own.add(id));
  }
  return new Map([...ids].map(([key, own]) => [key, [...own]]));
}

function differenceOf(ids: readonly string[], wanted: readonly string[]): string {
  const missing = wanted.filter((id) => !ids.includes(id));
  if (missing.length > 0) return `${missing.length} missing, the first of them ${missing[0]}`;
  const at = ids.findIndex((id, index) => id !== wanted[index]);
  return `${ids[at]} comes where ${wanted[at] ?? 'nothing'} belongs`;
}

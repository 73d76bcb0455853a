import { call } from '../harness/client.ts';
import { figure } from '../harness/metrics.ts';
import { eventually } from '../harness/waiting.ts';
import type { StoredMessage } from './ledger.ts';
import type { Account } from './publisher.ts';

const caughtUpMilliseconds = 30_000;
/** Under which key parts the store of a topic keeps the last message of a key. */
const table = 'PRIMARY';

/** Gives a topic a store that keeps the last message of each key, beside its files. */
export async function defineStore(account: Account, topicName: string): Promise<void> {
  const answer = await call(account.url, 'updateTopic', {
    token: account.token,
    path: { organizationName: account.organizationName, topicName },
    body: {
      batch: {},
      store: { keys: [{ tableType: 'PRIMARY', pkParts: ['key'], rangePrefix: '' }], ttlInSec: 86_400 },
    },
  });
  if (answer.status !== 200) throw new Error(`the topic could not be defined: ${answer.text}`);
}

/** What the stores hold once they have taken in everything: the sequence number under each topic and key. */
export async function readStores(account: Account): Promise<Map<string, number>> {
  await eventually('the stores have caught up', caughtUpMilliseconds, async () =>
    (await figure(account.url, 'millrace_consumers', { kind: 'store', figure: 'lag' })) === 0
      ? true
      : undefined,
  );
  const held = new Map<string, number>();
  let cursor: string | undefined;
  do {
    const page = await call(account.url, 'listState', {
      token: account.token,
      path: { organizationName: account.organizationName },
      body: { limit: 1000, ...(cursor === undefined ? {} : { cursor }) },
    });
    for (const { keyParts, attributes } of page.body.entries) {
      held.set(keyParts.join('/'), Number(attributes.sequence));
    }
    cursor = page.body.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return held;
}

/** Where the stores do not agree with the log: each must hold the last message of every key, and nothing else. */
export function disagreements(held: ReadonlyMap<string, number>, stored: readonly StoredMessage[]): string[] {
  const last = new Map<string, { offset: number; sequence: number }>();
  for (const { topicName, key, offset, text } of stored) {
    const place = `${topicName}/${table}/${key}`;
    const { sequence }: { sequence: number } = JSON.parse(text);
    if (offset > (last.get(place)?.offset ?? 0)) last.set(place, { offset, sequence });
  }
  const wrong: string[] = [];
  for (const [place, { sequence }] of last) {
    if (held.get(place) !== sequence)
      wrong.push(`the store has ${held.get(place)} at ${place}, the log ${sequence}`);
  }
  for (const place of held.keys())
    if (!last.has(place)) wrong.push(`the store has ${place}, the log has not`);
  return wrong;
}

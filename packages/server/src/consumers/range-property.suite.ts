import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import type { EventLog } from '../events/events.ts';
import { fragile, message, openTestEvents, organizationId, startNode, until } from './consumers.fixture.ts';
import { MemoryLog } from './memory-log.fixture.ts';
import { seeded } from './model.fixture.ts';
import { RangeReader, RangeTally } from './range-reader.fixture.ts';
import type { ConsumerRunner } from './runner.ts';

interface Node {
  readonly runner: ConsumerRunner;
  readonly reader: RangeReader;
  readonly way: ReturnType<typeof fragile>;
  dead: boolean;
  /** Where its time stands still. */
  time: number | undefined;
}

const steps = 40;
const timings = {
  leaseMilliseconds: 150,
  heartbeatMilliseconds: 30,
  pollMilliseconds: 300,
  drainMilliseconds: 300,
};

/**
 * Nodes come, go, die, freeze and lose their way to the database at random while range consumers read: every record
 * must be passed exactly once and in order, and an advance that is said to be lost must have changed
 * nothing. MILLRACE_SEED repeats a run, MILLRACE_ROUNDS says how many there are.
 */
export function rangePropertySuite(
  name: string,
  open: () => Promise<{ database: Database; close(): Promise<void> }>,
  rounds: number,
): void {
  const first =
    process.env.MILLRACE_SEED === undefined ? Date.now() % 1_000_000 : Number(process.env.MILLRACE_SEED);
  const count = Number(process.env.MILLRACE_ROUNDS ?? (process.env.MILLRACE_SEED === undefined ? rounds : 1));
  describe(name, { timeout: 240_000 }, () => {
    for (let seed = first; seed < first + count; seed += 1) {
      test(`every record is passed once and in order with seed ${seed}`, async (context) => {
        const { database, close } = await open();
        // Every other time a log whose offsets have gaps, as those of a shared sequence do.
        const { events, close: closeEvents } =
          seed % 2 === 0
            ? await openTestEvents()
            : { events: new MemoryLog({ gap: 3 }), close: async () => {} };
        const nodes: Node[] = [];
        const tally = new RangeTally();
        try {
          const published = await play(database, events, nodes, tally, seed);
          await finish(events, nodes);
          await Promise.all(nodes.map(({ runner }) => runner.close()));
          await check(database, published, tally);
          assert.deepEqual(
            nodes.flatMap(({ reader }) => reader.faults),
            [],
          );
          context.diagnostic(
            `seed ${seed}: ${nodes.length} nodes, ${published} messages, ${tally.moved.size} advances, ${tally.lost.size} lost, ${tally.unknown} unknown`,
          );
        } finally {
          for (const { reader } of nodes) reader.stop();
          await Promise.all(nodes.map(({ runner }) => runner.close()));
          await closeEvents();
          await close();
        }
      });
    }
  });
}

async function play(database: Database, events: EventLog, nodes: Node[], tally: RangeTally, seed: number) {
  const chance = seeded(seed);
  const pick = (limit: number) => Math.floor(chance() * limit);
  let published = 0;
  const startOne = () => {
    const way = fragile(database);
    const monotonic = () => node.time ?? performance.now();
    const runner = startNode(way, events, `n${nodes.length + 1}`, { timings, monotonic });
    const pace = { mostRecords: () => 1 + pick(10), pauseMilliseconds: () => pick(2) * pick(60) };
    const reader = new RangeReader(runner, events, tally, pace);
    const node: Node = { runner, reader, way, dead: false, time: undefined };
    nodes.push(node);
  };
  const alive = () => nodes.filter(({ dead }) => !dead);
  startOne();
  for (let step = 0; step < steps; step += 1) {
    const entries = Array.from({ length: pick(30) }, () => {
      published += 1;
      const topicName = ['orders', 'bills', `topic-${step % 7}`][pick(3)] ?? 'orders';
      return message(`k${pick(20)}`, String(published), { topicName, partition: pick(5) });
    });
    await events.append(entries);
    const node = alive()[pick(alive().length)];
    const dice = chance();
    if (dice < 0.15 && alive().length < 3) startOne();
    else if (dice < 0.22 && alive().length > 1 && node !== undefined) {
      await node.runner.close();
      node.dead = true;
    } else if (dice < 0.3 && node !== undefined) {
      node.dead = true;
      node.way.cut();
      if (alive().length === 0) startOne();
    } else if (dice < 0.45) {
      node?.way.cut();
      // It hears from nobody and does not notice, as when a process is stopped and continued.
      if (node !== undefined && chance() < 0.6) node.time ??= performance.now();
    } else if (dice < 0.65) {
      for (const one of alive()) one.way.mend();
      await delay(pick(100));
      for (const one of alive()) one.time = undefined;
    }
    await delay(5 + pick(45));
  }
  return published;
}

/** The nodes that are alive come to the end of every topic, and one of them sees so. */
async function finish(events: EventLog, nodes: readonly Node[]): Promise<void> {
  const alive = nodes.filter(({ dead }) => !dead);
  for (const node of alive) {
    node.way.mend();
    node.time = undefined;
  }
  const last = alive.at(-1);
  assert.ok(last !== undefined);
  const signal = AbortSignal.timeout(30_000);
  const { registration } = last.reader;
  for (const topic of await events.topics(organizationId)) {
    const targets = (await events.bounds(topic)).map(({ partition, last: offset }) => ({
      partition,
      offset,
    }));
    assert.equal(await registration.reached(topic.topicName, targets, signal), true, topic.topicName);
  }
  await until('nothing is left', async () => (await registration.status()).lag === 0);
}

async function check(database: Database, published: number, tally: RangeTally): Promise<void> {
  const rows = await database.query.selectFrom('secrets').select(['name', 'value', 'created_at']).execute();
  assert.equal(rows.length, published, 'every record once');
  const tokens = new Set<string>();
  const ranges = new Map<string, Map<number, number>>();
  for (const { name, value, created_at: offset } of rows) {
    const [token = '', partition, from, through] = value.split(' ');
    tokens.add(token);
    assert.ok(offset > Number(from) && offset <= Number(through));
    const share = `${name.split(' ')[0]}/${partition}`;
    ranges.set(share, (ranges.get(share) ?? new Map()).set(Number(from), Number(through)));
  }
  for (const [share, ofShare] of ranges) {
    let cursor: number | undefined = 0;
    for (let count = 0; count < ofShare.size; count += 1) {
      cursor = ofShare.get(cursor);
      assert.ok(cursor !== undefined, `the ranges of ${share} follow each other`);
    }
  }
  assert.deepEqual([...tally.moved.difference(tokens)], [], 'what was moved is there');
  assert.deepEqual([...tally.lost.intersection(tokens)], [], 'what was lost is not');
}

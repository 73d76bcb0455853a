import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import type { EventLog } from '../events/events.ts';
import type { Consumer, Registration } from './consumer.ts';
import {
  consumer,
  fragile,
  message,
  openTestEvents,
  organizationId,
  startNode,
  until,
} from './consumers.fixture.ts';
import { MemoryLog } from './memory-log.fixture.ts';
import { type Life, Model, seeded } from './model.fixture.ts';
import type { ConsumerRunner } from './runner.ts';

interface Node {
  readonly runner: ConsumerRunner;
  readonly registration: Registration;
  readonly life: Life;
  readonly way: ReturnType<typeof fragile>;
}

const maxAttempts = 4;
const steps = 40;
const timings = {
  leaseMilliseconds: 250,
  heartbeatMilliseconds: 50,
  pollMilliseconds: 300,
  drainMilliseconds: 500,
};

/**
 * Nodes come, go, die, lose their way to the database and are paused at random, while a consumer refuses at
 * random, and order by key and at-least-once must hold. MILLRACE_SEED repeats a run, MILLRACE_ROUNDS
 * says how many there are.
 */
export function propertySuite(
  name: string,
  open: () => Promise<{ database: Database; close(): Promise<void> }>,
  rounds: number,
): void {
  const first =
    process.env.MILLRACE_SEED === undefined ? Date.now() % 1_000_000 : Number(process.env.MILLRACE_SEED);
  const count = Number(process.env.MILLRACE_ROUNDS ?? (process.env.MILLRACE_SEED === undefined ? rounds : 1));
  describe(name, { timeout: 240_000 }, () => {
    for (let seed = first; seed < first + count; seed += 1) {
      test(`order by key and at-least-once hold with seed ${seed}`, async (context) => {
        const { database, close } = await open();
        // Every other time a log whose offsets have gaps, as those of a shared sequence do.
        const { events, close: closeEvents } = seed % 2 === 0 ? await openTestEvents() : withGaps();
        const nodes: Node[] = [];
        try {
          const { model, everything, commits } = await play(database, events, nodes, seed);
          const letters = await finish(database, events, nodes, model);
          const committed = await database.query.selectFrom('secrets').select('name').execute();
          if (commits) assert.equal(committed.length + letters, everything, 'all is committed once');
          context.diagnostic(
            `seed ${seed}: ${nodes.length} nodes, ${everything} messages, ${model.deliveries} deliveries in ${model.calls} calls, ${letters} dead letters`,
          );
        } finally {
          await Promise.all(nodes.map(({ runner }) => runner.close()));
          await closeEvents();
          await close();
        }
      });
    }
  });
}

async function play(database: Database, events: EventLog, nodes: Node[], seed: number) {
  const chance = seeded(seed);
  const pick = (limit: number) => Math.floor(chance() * limit);
  const model = new Model(chance, maxAttempts);
  const commits = chance() < 0.4;
  const shape: Partial<Consumer> = {
    batchSize: [1, 3, 10, 100][pick(4)] ?? 1,
    concurrency: [1, 2, 8][pick(3)] ?? 1,
    maxAttempts,
    retry: { firstMilliseconds: 2, mostMilliseconds: 20 },
    ...(commits ? { commit } : {}),
  };
  let started = 0;
  const startOne = () => {
    started += 1;
    const way = fragile(database);
    const life: Life = { dead: false, calls: new Set() };
    const runner = startNode(way, events, `n${started}`, { timings });
    const registration = runner.register(consumer(model.handle(life), shape));
    nodes.push({ runner, registration, life, way });
  };
  const alive = () => nodes.filter(({ life }) => !life.dead);
  const any = () => alive()[pick(alive().length)];
  startOne();
  let everything = 0;
  for (let step = 0; step < steps; step += 1) {
    const entries = Array.from({ length: pick(30) }, () => {
      const key = `k${Math.floor(chance() ** 2 * 20)}`;
      return message(key, model.next(key), { partition: Number(key.slice(1)) % 5 });
    });
    everything += entries.length;
    await events.append(entries);
    const node = any();
    const dice = chance();
    if (dice < 0.15 && alive().length < 3) startOne();
    else if (dice < 0.22 && alive().length > 1 && node !== undefined) await stop(node);
    else if (dice < 0.3 && node !== undefined) {
      node.life.dead = true;
      node.way.cut();
      model.forget(node.life.calls);
      if (alive().length === 0) startOne();
    } else if (dice < 0.4) node?.way.cut();
    else if (dice < 0.55) for (const one of alive()) one.way.mend();
    else if (dice < 0.62) void node?.registration.pause();
    else if (dice < 0.75) for (const one of alive()) one.registration.resume();
    await delay(5 + pick(45));
    model.check();
  }
  return { model, everything, commits };
}

/** Fails when a record is committed twice. */
const commit: NonNullable<Consumer['commit']> = async (transaction, batch) => {
  const rows = batch.map(({ record }) => ({ name: record.id, value: '', created_at: 0 }));
  await transaction.insertInto('secrets').values(rows).execute();
};

function withGaps() {
  return { events: new MemoryLog({ gap: 3 }), close: async () => {} };
}

async function stop(node: Node): Promise<void> {
  await node.runner.close();
  node.life.dead = true;
}

async function finish(database: Database, events: EventLog, nodes: Node[], model: Model): Promise<number> {
  for (const { life, way, registration } of nodes) {
    if (life.dead) continue;
    way.mend();
    registration.resume();
  }
  const last = nodes.findLast(({ life }) => !life.dead);
  assert.ok(last !== undefined);
  await until(
    'everything passed',
    async () => {
      const { lag, parked } = await last.registration.status();
      return lag === 0 && parked === 0;
    },
    30_000,
  );
  model.check();
  const { id } = consumer(async () => []);
  const letters = new Set<string>();
  for (let after: string | undefined; ; ) {
    const page = await last.runner.deadLetters.list(organizationId, id, after, 50);
    for (const { record } of page.letters)
      letters.add(`${record.key}:${Number.parseInt(record.id.split(':')[1] ?? '', 10)}`);
    if (page.next === undefined) break;
    after = page.next;
  }
  const lost = model.published.filter(({ key, text }) => {
    const name = `${key}:${text}`;
    return !model.handled.has(name) && !letters.has(name);
  });
  assert.deepEqual(lost, [], 'every message was handled or is a dead letter');
  const rows = await database.query.selectFrom('consumer_shares').selectAll().execute();
  const bounds = await events.bounds({ organizationId, topicName: 'orders' });
  for (const { partition, last: end } of bounds) {
    assert.equal(rows.find((row) => row.partition === partition)?.cursor, end);
  }
  return letters.size;
}

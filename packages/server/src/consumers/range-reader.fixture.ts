import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventLog, EventRecord } from '../events/events.ts';
import { organizationId } from './consumers.fixture.ts';
import {
  type RangeConsumer,
  type RangeMove,
  RangeOutcomeUnknownError,
  type RangeRegistration,
} from './ranges.ts';
import type { ConsumerRunner } from './runner.ts';

/** How much a reader takes at once, and how long it works on that. */
interface RangePace {
  mostRecords(): number;
  pauseMilliseconds(): number;
}

/** What became of the ranges that all readers of a test passed. */
export class RangeTally {
  readonly moved = new Set<string>();
  readonly lost = new Set<string>();
  unknown = 0;
}

/**
 * Reads whatever it holds and writes a row a record with the cursors, as the lake writer does with its
 * files. A record that is written twice breaks a unique key.
 */
export class RangeReader implements RangeConsumer {
  readonly id = `lake/${organizationId}`;
  readonly organizationId = organizationId;
  readonly registration: RangeRegistration;
  readonly faults: unknown[] = [];
  readonly #events: EventLog;
  readonly #tally: RangeTally;
  readonly #pace: RangePace;
  readonly #noticed = new Set<string>();
  #running = false;
  #stopped = false;

  constructor(runner: ConsumerRunner, events: EventLog, tally: RangeTally, pace: RangePace) {
    this.#events = events;
    this.#tally = tally;
    this.#pace = pace;
    this.registration = runner.registerRanges(this);
  }

  wants(): boolean {
    return true;
  }

  noticed(topicName: string): void {
    this.#noticed.add(topicName);
    if (this.#running || this.#stopped) return;
    this.#running = true;
    void this.#run().finally(() => {
      this.#running = false;
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  async #run(): Promise<void> {
    for (const topicName of this.#noticed) {
      if (this.#stopped) return;
      this.#noticed.delete(topicName);
      try {
        if (await this.#pass(topicName)) this.#noticed.add(topicName);
      } catch (error) {
        if (error instanceof RangeOutcomeUnknownError) this.#tally.unknown += 1;
        else this.faults.push(error);
        this.#noticed.add(topicName);
      }
    }
  }

  /** True when there may be more. */
  async #pass(topicName: string): Promise<boolean> {
    const moves: RangeMove[] = [];
    const token = randomUUID();
    const rows: { name: string; value: string; created_at: number }[] = [];
    for (const { address, cursor } of this.registration.held(topicName)) {
      const limits = { records: this.#pace.mostRecords(), bytes: 1_000_000 };
      const records: EventRecord[] = await this.#events.read(address, cursor, limits);
      const through = records.at(-1)?.offset;
      if (through === undefined) continue;
      moves.push({ address, through });
      const value = `${token} ${address.partition} ${cursor} ${through}`;
      for (const record of records)
        rows.push({ name: `${topicName} ${record.id}`, value, created_at: record.offset });
    }
    if (moves.length === 0) return false;
    await delay(this.#pace.pauseMilliseconds());
    const outcome = await this.registration.advance(moves, async (transaction) => {
      await transaction.insertInto('secrets').values(rows).execute();
    });
    this.#tally[outcome].add(token);
    return true;
  }
}

import type { Database } from '../database/database.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { type Random, randomId } from '../platform/random.ts';
import {
  changeRegistrations,
  databaseTime,
  deleteExpiredNodes,
  findIncarnation,
  joinNodes,
  type LiveNode,
  leaveNodes,
  listLiveNodes,
  listRegistrations,
  prolongNode,
} from './node-store.ts';

export interface LeaseTimings {
  /** How long a node lives after its last heartbeat. */
  readonly leaseMilliseconds: number;
  readonly heartbeatMilliseconds: number;
}

export interface MembershipOptions {
  readonly database: Database;
  readonly clock: Clock;
  /** A time that never jumps. */
  readonly monotonic: () => number;
  readonly random: Random;
  readonly log: Log;
  readonly nodeId: string;
  readonly timings: LeaseTimings;
  /** Other nodes came, went or registered something else. */
  onChange(): void;
  /** This node could not prolong its life in time: others may have its shares. */
  onLost(): void;
}

interface KnownNode {
  readonly incarnation: string;
  readonly registrations: number;
  readonly consumerIds: ReadonlySet<string>;
}

/** Rows of nodes that died so many leases ago are deleted. */
const sweptLeases = 10;

/**
 * This node among those that share the work. One row a node is prolonged every heartbeat and says when the
 * node is dead, by the clock of the database; so the cost of being alive does not grow with the number of
 * shares. A node counts its own lease from before it sent the heartbeat, by a clock that does not jump,
 * and so gives up before others may take what it has.
 */
export class Membership {
  readonly incarnation: string;
  readonly #options: MembershipOptions;
  readonly #announced = new Set<string>();
  #wanted: ReadonlySet<string> = new Set();
  #nodes = new Map<string, KnownNode>();
  #validUntil = Number.NEGATIVE_INFINITY;
  #joined = false;
  #closed = false;
  #beating: Promise<void> | undefined;
  #again = false;
  #timer: NodeJS.Timeout | undefined;
  #lossTimer: NodeJS.Timeout | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.incarnation = `${options.nodeId}.${randomId(options.random)}`;
  }

  /** Whether nobody else can have taken this node's shares. */
  isValid(): boolean {
    return !this.#closed && this.#options.monotonic() < this.#validUntil;
  }

  /** The nodes that run a consumer, in an order that is the same everywhere. */
  nodesOf(consumerId: string): readonly string[] {
    const ids: string[] = [];
    for (const [id, node] of this.#nodes) if (node.consumerIds.has(consumerId)) ids.push(id);
    return ids.sort();
  }

  /** All live nodes. */
  nodes(): readonly string[] {
    return [...this.#nodes.keys()].sort();
  }

  /** Makes known what this node runs, with the next heartbeat, which is now. */
  setConsumers(consumerIds: ReadonlySet<string>): void {
    this.#wanted = consumerIds;
    this.beat();
  }

  /** A heartbeat now, or right after the one that is under way. */
  beat(): void {
    if (this.#closed) return;
    if (this.#beating !== undefined) {
      this.#again = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#again = false;
    let next = this.#options.timings.heartbeatMilliseconds;
    this.#beating = this.#beat()
      .catch((error: unknown) => {
        this.#options.log.warn({ event: 'consumers.heartbeat-failed', error }, 'heartbeat failed');
        next /= 4;
      })
      .finally(() => {
        this.#beating = undefined;
        if (this.#closed) return;
        this.#timer = setTimeout(() => this.beat(), this.#again ? 10 : next).unref();
      });
  }

  /** Leaves at once, so that others take over without waiting. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lossTimer);
    await this.#beating;
    if (this.#joined) await leaveNodes(this.#options.database, this.incarnation);
  }

  async #beat(): Promise<void> {
    const { database, monotonic, timings } = this.#options;
    const sentAt = monotonic();
    if (!(await this.#prolong())) return;
    await this.#announceConsumers();
    const live = await listLiveNodes(database.query, this.#time());
    const changed = await this.#learn(live);
    if (this.#closed) return;
    // Still a member in the eyes of others, as far as the row went that was written after this moment.
    this.#validUntil = sentAt + timings.leaseMilliseconds;
    this.#watchLease();
    if (changed) this.#options.onChange();
  }

  async #prolong(): Promise<boolean> {
    const { database, nodeId, log } = this.#options;
    const { query } = database;
    if (this.#joined && (await prolongNode(query, this.incarnation, this.#expiry()))) return true;
    if (this.#joined && (await findIncarnation(query, nodeId)) !== undefined) {
      log.error(
        { event: 'consumers.node-superseded', nodeId },
        'another process runs under the id of this node',
      );
      this.#closed = true;
      this.#lose();
      return false;
    }
    const consumerIds = [...this.#wanted];
    await joinNodes(database, { id: nodeId, incarnation: this.incarnation, consumerIds }, this.#expiry());
    this.#joined = true;
    this.#announced.clear();
    for (const id of consumerIds) this.#announced.add(id);
    await deleteExpiredNodes(query, this.#time(-sweptLeases * this.#options.timings.leaseMilliseconds));
    await database.announce('consumers.nodes', nodeId);
    return true;
  }

  async #announceConsumers(): Promise<void> {
    const added = [...this.#wanted].filter((id) => !this.#announced.has(id));
    const removed = [...this.#announced].filter((id) => !this.#wanted.has(id));
    if (added.length === 0 && removed.length === 0) return;
    const { database, nodeId } = this.#options;
    await changeRegistrations(database, this.incarnation, added, removed);
    for (const id of added) this.#announced.add(id);
    for (const id of removed) this.#announced.delete(id);
    await database.announce('consumers.nodes', nodeId);
  }

  /** Takes note of who is alive; true when that, or what they run, has changed. */
  async #learn(live: readonly LiveNode[]): Promise<boolean> {
    const nodes = new Map<string, KnownNode>();
    let changed = live.length !== this.#nodes.size;
    for (const { id, incarnation, registrations } of live) {
      const known = this.#nodes.get(id);
      if (known?.incarnation === incarnation && known.registrations === registrations) {
        nodes.set(id, known);
        continue;
      }
      changed = true;
      const consumerIds = new Set(await listRegistrations(this.#options.database.query, incarnation));
      nodes.set(id, { incarnation, registrations, consumerIds });
    }
    this.#nodes = nodes;
    return changed;
  }

  #watchLease(): void {
    clearTimeout(this.#lossTimer);
    const left = this.#validUntil - this.#options.monotonic();
    this.#lossTimer = setTimeout(
      () => {
        if (this.#options.monotonic() >= this.#validUntil) this.#lose();
        else this.#watchLease();
      },
      Math.max(left, 1),
    ).unref();
  }

  #lose(): void {
    clearTimeout(this.#lossTimer);
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#nodes.clear();
    this.#options.onLost();
  }

  #time(offset = 0) {
    const { database, clock } = this.#options;
    return databaseTime(database, clock, offset);
  }

  #expiry() {
    return this.#time(this.#options.timings.leaseMilliseconds);
  }
}

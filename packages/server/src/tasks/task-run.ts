import type { Registration } from '../consumers/consumer.ts';
import type { ConsumerRunner } from '../consumers/runner.ts';
import { type Random, randomId } from '../platform/random.ts';
import { streamsOf, type TopicsDocument } from '../topics/definition.ts';
import type { Invocation, InvocationResult, TaskPool } from './execution/execution.ts';
import { taskConsumer } from './streams/task-consumer.ts';
import type { TaskAddress, Version } from './task-store.ts';
import type { OrganizationReference } from './version.ts';

export interface TaskRunOptions {
  readonly address: TaskAddress;
  readonly organization: OrganizationReference;
  /** Which life of the task this is. */
  readonly life: string;
  readonly runner: ConsumerRunner;
  readonly random: Random;
  /** Topics that the task has a place in, besides those that feed it now. */
  readonly earlierTopics: readonly string[];
  /** Whether the service is stopping. */
  readonly isStopping: () => boolean;
  readonly observe: (kind: InvocationKind, result: InvocationResult) => void;
}

export type InvocationKind = 'stream' | 'invoke' | 'endpoint';

/** The consumer that gives the streams of a task to it. */
export function consumerIdOf({ organizationId, taskId }: TaskAddress): string {
  return `task/${organizationId}/${taskId}`;
}

/**
 * A task on this node: the processes of its active version, and the consumer that gives it its messages.
 * Another version takes over without a gap: what begins from then on goes to its processes, and those of
 * the version before end when they have finished what they hold.
 */
export class TaskRun {
  readonly life: string;
  readonly organization: OrganizationReference;
  readonly #options: TaskRunOptions;
  readonly #wanted: Set<string>;
  readonly #leaving = new Set<TaskPool>();
  #document: TopicsDocument;
  #version: Version;
  #pool: TaskPool;
  #inputs: ReadonlySet<string>;
  #registration: Registration | undefined;
  #pausing: Promise<void> | undefined;

  constructor(options: TaskRunOptions, version: Version, pool: TaskPool, document: TopicsDocument) {
    this.life = options.life;
    this.organization = options.organization;
    this.#options = options;
    this.#wanted = new Set(options.earlierTopics);
    this.#version = version;
    this.#pool = pool;
    this.#document = document;
    this.#inputs = new Set(version.settings.inputQueueNames);
    this.#register();
  }

  get version(): Version {
    return this.#version;
  }

  /** Why it does not work as it should, if so. */
  get trouble(): string | undefined {
    return this.#pool.trouble;
  }

  get isPaused(): boolean {
    return this.#pausing !== undefined;
  }

  figures(): { processes: number; busy: number } {
    const sum = { processes: 0, busy: 0 };
    for (const pool of [this.#pool, ...this.#leaving]) {
      const { processes, busy } = pool.figures();
      sum.processes += processes;
      sum.busy += busy;
    }
    return sum;
  }

  async invoke(
    kind: InvocationKind,
    invocation: Omit<Invocation, 'requestId'>,
    requestId = randomId(this.#options.random),
  ): Promise<InvocationResult> {
    const result = await this.#pool.invoke({ ...invocation, requestId });
    this.#options.observe(kind, result);
    return result;
  }

  /** Has another version take over. */
  switchTo(version: Version, pool: TaskPool): void {
    const before = this.#pool;
    this.#version = version;
    this.#pool = pool;
    this.#inputs = new Set(version.settings.inputQueueNames);
    this.#leaving.add(before);
    void before.drain().finally(() => this.#leaving.delete(before));
    this.#register();
    this.#registration?.refresh();
  }

  /** The topics of the organization are defined anew. */
  setTopics(document: TopicsDocument): void {
    this.#document = document;
    this.#registration?.refresh();
  }

  /** Hands out nothing more; resolves when what is in hand has ended. */
  pause(): Promise<void> {
    this.#pausing ??= this.#registration?.pause() ?? Promise.resolve();
    return this.#pausing;
  }

  resume(): void {
    this.#pausing = undefined;
    this.#registration?.resume();
  }

  /** Ends it on this node at once; what is in hand is given up. */
  async stop(): Promise<void> {
    void this.pause();
    const pools = [this.#pool, ...this.#leaving];
    await Promise.all(pools.map((pool) => pool.close()));
    await this.#registration?.remove();
  }

  #register(): void {
    if (this.#registration !== undefined || this.#inputs.size === 0) return;
    const run = this;
    this.#registration = this.#options.runner.register(
      taskConsumer({
        id: consumerIdOf(this.#options.address),
        organization: this.organization,
        get settings() {
          return run.#version.settings;
        },
        get inputs() {
          return run.#inputs;
        },
        wants: (topicName) => this.#wants(topicName),
        isPaused: () => this.isPaused,
        isStopping: this.#options.isStopping,
        invoke: (event, signal) => this.invoke('stream', { event, signal }),
      }),
    );
    if (this.isPaused) void this.#registration.pause();
  }

  /** Once wanted, always: messages that were accepted for the task stay its own when a topic is redefined. */
  #wants(topicName: string): boolean {
    if (this.#wanted.has(topicName)) return true;
    const feeds =
      this.#inputs.has(topicName) ||
      streamsOf(this.#document, topicName).some((stream) => this.#inputs.has(stream));
    if (feeds) this.#wanted.add(topicName);
    return feeds;
  }
}

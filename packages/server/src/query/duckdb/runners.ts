import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bubblewrap } from '../../platform/bubblewrap.ts';
import type { EngineLimits } from '../engine.ts';
import { Child, compileAnswers } from './child.ts';
import { runnerLaunch } from './launch.ts';
import { type PlanRequest, RunnerAnswer, type RunRequest } from './protocol.ts';

type RunnerChild = Child<Omit<PlanRequest, 'id'> | Omit<RunRequest, 'id'>, typeof RunnerAnswer>;

/** A child that belongs to one organization until it ends. */
export interface Runner {
  readonly child: RunnerChild;
  readonly organizationId: string;
  readonly directory: string;
  /** Tells a folder that was deleted and made again from the one that the child sees. */
  readonly folderId: bigint;
  readonly scratch: string;
}

export interface RunnersOptions {
  readonly bubblewrap: Bubblewrap | undefined;
  /** Where scratch folders are made. */
  readonly scratch: string;
  readonly limits: EngineLimits;
  readonly idleMilliseconds: number;
  readonly mostIdle: number;
}

interface Idle {
  readonly runner: Runner;
  readonly timer: NodeJS.Timeout;
}

const answers = compileAnswers(RunnerAnswer);

/**
 * The runners that are at work and those that wait for the next query of their organization. Starting one
 * takes longer than a small query, so it is kept for a while; it never serves another organization.
 */
export class Runners {
  readonly #options: RunnersOptions;
  readonly #idle = new Set<Idle>();
  readonly #all = new Set<Runner>();
  #closed = false;

  constructor(options: RunnersOptions) {
    this.#options = options;
  }

  async take(organization: { id: string; name: string }, directory: string): Promise<Runner> {
    await mkdir(directory, { recursive: true });
    const { ino: folderId } = await stat(directory, { bigint: true });
    for (const idle of this.#idle) {
      const { runner } = idle;
      if (runner.organizationId !== organization.id) continue;
      this.#forget(idle);
      if (runner.directory === directory && runner.folderId === folderId && !runner.child.hasEnded)
        return runner;
      await this.discard(runner);
    }
    return this.#start(organization, directory, folderId);
  }

  /** Keeps a runner that is well for the next query. */
  async giveBack(runner: Runner): Promise<void> {
    if (this.#closed || runner.child.hasEnded) return this.discard(runner);
    const timer = setTimeout(() => {
      this.#forget(idle);
      this.discard(runner).catch(() => {});
    }, this.#options.idleMilliseconds).unref();
    const idle = { runner, timer };
    this.#idle.add(idle);
    const [oldest] = this.#idle;
    if (this.#idle.size > this.#options.mostIdle && oldest !== undefined) {
      this.#forget(oldest);
      await this.discard(oldest.runner);
    }
  }

  /** Ends a runner and deletes what it has left. */
  async discard(runner: Runner): Promise<void> {
    runner.child.kill();
    await runner.child.ended;
    await rm(runner.scratch, { recursive: true, force: true });
    this.#all.delete(runner);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { timer } of this.#idle) clearTimeout(timer);
    this.#idle.clear();
    await Promise.all([...this.#all].map((runner) => this.discard(runner)));
  }

  async #start(
    organization: { id: string; name: string },
    directory: string,
    folderId: bigint,
  ): Promise<Runner> {
    const { bubblewrap, limits } = this.#options;
    const scratch = await mkdtemp(join(this.#options.scratch, 'runner-'));
    try {
      await Promise.all(['temp', 'result-temp', 'state'].map((name) => mkdir(join(scratch, name))));
      const child: RunnerChild = await Child.start(
        runnerLaunch(bubblewrap, directory, {
          databaseName: organization.name,
          scratch,
          memoryBytes: limits.memoryBytes,
          threads: limits.threads,
          temporaryBytes: limits.temporaryBytes,
          resultBytes: limits.resultBytes,
        }),
        answers,
      );
      const runner = { child, organizationId: organization.id, directory, folderId, scratch };
      this.#all.add(runner);
      if (this.#closed) await this.discard(runner);
      return runner;
    } catch (error) {
      await rm(scratch, { recursive: true, force: true });
      throw error;
    }
  }

  #forget(idle: Idle): void {
    clearTimeout(idle.timer);
    this.#idle.delete(idle);
  }
}

export interface FairQueueLimits {
  /** How many jobs run at once. */
  readonly running: number;
  /** How many jobs of one owner run at once. */
  readonly runningOfOne: number;
  /** How many jobs wait, of all and of one owner. */
  readonly waiting: number;
  readonly waitingOfOne: number;
}

interface Job {
  readonly owner: string;
  readonly start: () => Promise<void>;
}

/**
 * Runs jobs of several owners in turn: whoever has many waiting delays their own and nobody else's. Owners
 * take turns, the jobs of one keep their order, and no owner has more than their share running.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  /** Waiting jobs by owner; the order of the map is the order of turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #running = new Map<string, number>();
  readonly #ends = new Set<Promise<void>>();
  #runningCount = 0;
  #waitingCount = 0;
  #closed = false;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** Takes a job, to be started when its turn has come; undefined when too many are waiting. */
  add(owner: string, start: () => Promise<void>): { withdraw(): boolean } | undefined {
    const own = this.#waiting.get(owner) ?? [];
    const { waiting, waitingOfOne } = this.#limits;
    if (this.#closed || this.#waitingCount >= waiting || own.length >= waitingOfOne) return undefined;
    const job = { owner, start };
    own.push(job);
    this.#waiting.set(owner, own);
    this.#waitingCount += 1;
    this.#next();
    return { withdraw: () => this.#withdraw(job) };
  }

  get isIdle(): boolean {
    return this.#runningCount === 0 && this.#waitingCount === 0;
  }

  /** Starts nothing more and waits for what is running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    this.#waitingCount = 0;
    await Promise.all(this.#ends);
  }

  /** Takes a job out that has not been started; false when it has. */
  #withdraw(job: Job): boolean {
    const own = this.#waiting.get(job.owner) ?? [];
    const place = own.indexOf(job);
    if (place < 0) return false;
    own.splice(place, 1);
    if (own.length === 0) this.#waiting.delete(job.owner);
    this.#waitingCount -= 1;
    return true;
  }

  #next(): void {
    while (!this.#closed && this.#runningCount < this.#limits.running) {
      const job = this.#takeTurn();
      if (job === undefined) return;
      this.#start(job);
    }
  }

  #takeTurn(): Job | undefined {
    for (const [owner, jobs] of this.#waiting) {
      if ((this.#running.get(owner) ?? 0) >= this.#limits.runningOfOne) continue;
      const job = jobs.shift();
      // Behind everybody else, for the next turn.
      this.#waiting.delete(owner);
      if (jobs.length > 0) this.#waiting.set(owner, jobs);
      this.#waitingCount -= 1;
      return job;
    }
    return undefined;
  }

  #start(job: Job): void {
    this.#runningCount += 1;
    this.#running.set(job.owner, (this.#running.get(job.owner) ?? 0) + 1);
    const end = job.start().finally(() => {
      this.#ends.delete(end);
      this.#runningCount -= 1;
      const left = (this.#running.get(job.owner) ?? 1) - 1;
      if (left === 0) this.#running.delete(job.owner);
      else this.#running.set(job.owner, left);
      this.#next();
    });
    this.#ends.add(end);
  }
}

/** Things that become due at a time, the earliest first. */
export class DueQueue<Thing> {
  readonly #heap: { readonly at: number; readonly thing: Thing }[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** When the earliest becomes due. */
  get earliest(): number | undefined {
    return this.#heap[0]?.at;
  }

  add(at: number, thing: Thing): void {
    const heap = this.#heap;
    const added = { at, thing };
    let place = heap.push(added) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || parent.at <= at) break;
      heap[place] = parent;
      place = above;
    }
    heap[place] = added;
  }

  /** Takes the earliest out if it is due. */
  take(now: number): { readonly at: number; readonly thing: Thing } | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.at > now) return undefined;
    const last = this.#heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    return first;
  }

  clear(): void {
    this.#heap.length = 0;
  }

  #sink(moved: { readonly at: number; readonly thing: Thing }): void {
    const heap = this.#heap;
    let place = 0;
    for (;;) {
      const left = heap[2 * place + 1];
      const right = heap[2 * place + 2];
      const child = right !== undefined && left !== undefined && right.at < left.at ? right : left;
      if (child === undefined || child.at >= moved.at) break;
      heap[place] = child;
      place = child === right ? 2 * place + 2 : 2 * place + 1;
    }
    heap[place] = moved;
  }
}

interface Listener {
  readonly hear: (payload: string) => void;
  readonly missed: (() => void) | undefined;
}

/** What PostgreSQL carries in one notification is under 8,000 bytes; this leaves room for the envelope. */
const payloadLimitBytes = 4_000;

/** Refuses on both engines what one of them could not carry, so that a laptop finds it first. */
export function checkAnnouncement(channel: string, payload: string): void {
  if (!/^[\w:.-]{1,100}$/.test(channel)) {
    throw new RangeError('The name of a channel is 1 to 100 letters, digits and _ : . -');
  }
  if (payload.includes('\0')) throw new RangeError('An announcement carries no NUL character');
  if (Buffer.byteLength(payload) > payloadLimitBytes) {
    throw new RangeError(`An announcement carries at most ${payloadLimitBytes} bytes`);
  }
}

/** The listeners of this process by channel. */
export class Announcements {
  readonly #channels = new Map<string, Set<Listener>>();

  listen(channel: string, hear: (payload: string) => void, missed?: () => void): () => void {
    const listener: Listener = { hear, missed };
    const listeners = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#channels.get(channel) === listeners) this.#channels.delete(channel);
    };
  }

  /** Tells every listener of the channel, also those after one that throws; then throws what they threw. */
  deliver(channel: string, payload: string): void {
    callAll([...(this.#channels.get(channel) ?? [])].map((listener) => () => listener.hear(payload)));
  }

  /** Tells every listener that announcements may have been lost. */
  deliverGap(): void {
    const listeners = [...this.#channels.values()].flatMap((channel) => [...channel]);
    callAll(listeners.map((listener) => () => listener.missed?.()));
  }
}

function callAll(calls: (() => void)[]): void {
  const faults: unknown[] = [];
  for (const call of calls) {
    try {
      call();
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length === 1) throw faults[0];
  if (faults.length > 1) throw new AggregateError(faults, 'Several listeners of an announcement failed');
}

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Announcements } from '../announcements.ts';

/** All our channels travel on one of PostgreSQL's. */
export const postgresChannel = 'millrace';

const firstPauseMilliseconds = 50;
const longestPauseMilliseconds = 5_000;
const heartbeatMilliseconds = 10_000;

/**
 * The connection on which this node hears the others. When it drops it is made again, for as long as it
 * takes, and then every listener is told that it may have missed something.
 *
 * A notification is three lines: the node that sent it, the channel, and the payload.
 */
export class Notifications {
  readonly #settings: pg.ClientConfig;
  readonly #announcements: Announcements;
  readonly #node = randomUUID();
  readonly #closing = new AbortController();
  #client: pg.Client | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(settings: pg.ClientConfig, announcements: Announcements) {
    this.#settings = settings;
    this.#announcements = announcements;
  }

  /** Resolves when this node hears the others; rejects when it cannot connect. */
  async open(): Promise<void> {
    await this.#connect();
  }

  envelope(channel: string, payload: string): string {
    return `${this.#node}\n${channel}\n${payload}`;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#heartbeat);
    await this.#client?.end();
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(this.#settings);
    const lost = Promise.withResolvers<void>();
    client.on('error', () => lost.resolve());
    client.on('end', () => lost.resolve());
    client.on('notification', (notification) => this.#hear(notification.payload ?? ''));
    try {
      await client.connect();
      await client.query(`listen ${postgresChannel}`);
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
    // A peer that vanished without a word is noticed only by asking it.
    this.#heartbeat = setInterval(() => {
      client.query('select 1').catch(() => lost.resolve());
    }, heartbeatMilliseconds);
    this.#heartbeat.unref();
    void lost.promise.then(() => this.#reconnect(client));
  }

  async #reconnect(lost: pg.Client): Promise<void> {
    clearInterval(this.#heartbeat);
    lost.end().catch(() => {});
    let pause = firstPauseMilliseconds;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#connect();
        if (this.#closing.signal.aborted) await this.close();
        else guard(() => this.#announcements.deliverGap());
        return;
      } catch {
        const jittered = pause * (0.5 + Math.random() / 2);
        await delay(jittered, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {});
        pause = Math.min(pause * 2, longestPauseMilliseconds);
      }
    }
  }

  #hear(message: string): void {
    const [node, channel] = message.split('\n', 2);
    // What this node said it has already heard.
    if (node === undefined || channel === undefined || node === this.#node) return;
    guard(() => this.#announcements.deliver(channel, message.slice(node.length + channel.length + 2)));
  }
}

/** A listener that throws is our defect; it must not end the connection that others hear through. */
function guard(deliver: () => void): void {
  try {
    deliver();
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Consumer, RetryDelays } from '../../consumers/consumer.ts';
import type { InvocationResult } from '../execution/execution.ts';
import type { VersionSettings } from '../settings.ts';
import type { OrganizationReference } from '../version.ts';
import { batchEvent, failAll, failuresOf, streamOf } from './batch.ts';

/** A task as its streams see it. Settings and inputs are asked each time: the active version may change. */
export interface StreamReader {
  readonly id: string;
  readonly organization: OrganizationReference;
  readonly settings: VersionSettings;
  readonly inputs: ReadonlySet<string>;
  wants(topicName: string): boolean;
  isPaused(): boolean;
  /** Whether the service is stopping, so that a task may fail through no fault of its own. */
  isStopping(): boolean;
  invoke(event: Uint8Array, signal: AbortSignal): Promise<InvocationResult>;
}

export const retryDelays: RetryDelays = { firstMilliseconds: 500, mostMilliseconds: 60_000 };

const patience = { firstMilliseconds: 50, mostMilliseconds: 2_000 } as const;

/** The consumer that gives a task the messages of its streams. */
export function taskConsumer(reader: StreamReader): Consumer {
  return {
    id: reader.id,
    organizationId: reader.organization.id,
    startAt: 'beginning',
    retry: retryDelays,
    get batchSize() {
      return reader.settings.batchSize;
    },
    get concurrency() {
      return reader.settings.concurrency;
    },
    get maxAttempts() {
      return reader.settings.maxAttempts;
    },
    wants: (topicName) => reader.wants(topicName),
    selects: (record) => streamOf(record, reader.inputs) !== undefined,
    handle: async (batch, signal) => {
      const event = batchEvent(batch, reader.organization.name, reader.inputs);
      const result = await invokePatiently(reader, event, signal);
      const failures =
        result.outcome === 'success'
          ? failuresOf(result.payload, batch)
          : failAll(batch.length, describeError(result.error));
      // Calls of the task to the service are refused by then. The work is given up without a verdict, and
      // begins again at the next start.
      if (failures.length > 0 && reader.isStopping()) await aborted(signal);
      return failures;
    },
  };
}

/**
 * That the code could not be called at all says nothing about the messages, so it is tried again for as
 * long as one call may take before it counts against them.
 */
async function invokePatiently(
  reader: StreamReader,
  event: Uint8Array,
  signal: AbortSignal,
): Promise<InvocationResult> {
  const end = performance.now() + reader.settings.timeoutSec * 1000;
  let wait: number = patience.firstMilliseconds;
  for (;;) {
    const result = await reader.invoke(event, signal);
    const isUnavailable = result.outcome === 'failure' && result.kind === 'unavailable';
    if (!isUnavailable || signal.aborted || reader.isPaused() || performance.now() >= end) return result;
    await delay(wait, undefined, { signal }).catch(() => {});
    wait = Math.min(2 * wait, patience.mostMilliseconds);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

const longestError = 2_000;

function describeError({ type, message }: { type: string; message: string }): string {
  const text = type === '' ? message : `${type}: ${message}`;
  return text.slice(0, longestError);
}

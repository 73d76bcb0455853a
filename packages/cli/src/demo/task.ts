import { log, publishMany, type StreamEvent, state } from '@millrace/runner';

interface Visit {
  readonly country: string;
  readonly revenue?: number;
}

/** Counts visits by country in state, a batch at a time, and passes purchases on to a topic of their own. */
export async function handler(event: StreamEvent): Promise<void> {
  const counts = new Map<string, number>();
  const purchases: Visit[] = [];
  for (const { body } of event.Records) {
    const visit: Visit = JSON.parse(body);
    counts.set(visit.country, (counts.get(visit.country) ?? 0) + 1);
    if (visit.revenue !== undefined) purchases.push(visit);
  }
  await publishMany('purchases', purchases, { keyPath: '/user', idPath: '/id' });
  await Promise.all(
    [...counts].map(([country, by]) => state.increment(['country', country], 'visits', { by })),
  );
  log.info('counted', { messages: event.Records.length, purchases: purchases.length });
}

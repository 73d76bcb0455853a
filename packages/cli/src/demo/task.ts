import { log, publish, type StreamEvent, state } from '@millrace/runner';

/** Counts visits by country in state, a batch at a time, and passes purchases on to a topic of their own. */
export async function handler(event: StreamEvent): Promise<void> {
  const counts = new Map<string, number>();
  const purchases: Promise<unknown>[] = [];
  for (const { body, attributes } of event.Records) {
    const visit: { country: string; revenue?: number } = JSON.parse(body);
    counts.set(visit.country, (counts.get(visit.country) ?? 0) + 1);
    if (visit.revenue !== undefined)
      purchases.push(
        publish('purchases', visit, {
          key: attributes.MessageGroupId,
          id: attributes.MessageDeduplicationId,
        }),
      );
  }
  await Promise.all(purchases);
  await Promise.all(
    [...counts].map(([country, by]) => state.increment(['country', country], 'visits', { by })),
  );
  log.info('counted', { messages: event.Records.length, purchases: purchases.length });
}

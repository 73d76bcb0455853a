import { newApiKey, newOrganization, newPerson } from '../harness/people.ts';
import type { RunningService } from '../harness/service.ts';
import { Ledger } from './ledger.ts';
import type { SeededRandom } from './random.ts';
import { Writer } from './writer.ts';

/** Who publishes; where to is known when the service runs. */
export interface Publishing {
  readonly organizationName: string;
  readonly token: string;
}

/** Makes an organization and a key, which outlives every restart. */
export async function newPublishing(service: RunningService): Promise<Publishing> {
  const person = await newPerson(service);
  const organizationName = await newOrganization(service, person);
  const { secret } = await newApiKey(service, person.accessToken, organizationName);
  return { organizationName, token: secret };
}

export const topicNames = ['orders', 'clicks'] as const;

/** Writers with a common ledger, by turns on two topics. */
export function newWriters(
  count: number,
  random: SeededRandom,
  more: { readonly mostFilling?: number } = {},
): { writers: Writer[]; ledger: Ledger } {
  const ledger = new Ledger();
  const writers = Array.from({ length: count }, (_, index) => {
    const topicName = topicNames[index % topicNames.length] ?? topicNames[0];
    return new Writer({ name: `w${index}`, topicName, keys: 3, random: random.fork(), ledger, ...more });
  });
  return { writers, ledger };
}

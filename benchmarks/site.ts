import { readFileSync } from 'node:fs';
import { call } from '../acceptance/harness/client.ts';
import { newApiKey, newOrganization, newPerson } from '../acceptance/harness/people.ts';
import { type RunningService, startService } from '../acceptance/harness/service.ts';

/** 200 bytes, as an event of a web site may look. */
export const message = JSON.stringify({
  page: '/pricing',
  referrer: 'https://www.example.com/search?q=data',
  user: 'user-000042',
  session: 'f3b1c2d4e5',
  at: '2026-11-15T09:30:00.000Z',
  duration: 1234,
  ok: true,
}).padEnd(200, ' ');

export interface Site {
  readonly message: string;
  readonly service: RunningService;
  readonly organizationUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A service with an organization and a topic that feeds the lake and one stream. */
export async function openSite(environment: Readonly<Record<string, string>> = {}): Promise<Site> {
  const service = await startService({
    environment: { MILLRACE_RATE_LIMIT_DEFAULT: '1000000', ...environment },
  });
  const person = await newPerson(service);
  const organizationName = await newOrganization(service, person);
  await call(service.url, 'updateTopic', {
    token: person.accessToken,
    path: { organizationName, topicName: 'clicks' },
    body: { batch: {}, streams: [{ name: 'clicks' }] },
  });
  const key = await newApiKey(service, person.accessToken, organizationName);
  return {
    message,
    service,
    organizationUrl: `${service.url}/v1/organization/${organizationName}`,
    headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
  };
}

export function residentMebibytes(service: RunningService): number {
  const status = readFileSync(`/proc/${service.process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

import { setTimeout as pause } from 'node:timers/promises';
import type { Site } from './site.ts';

/** Often at first and then less, as a client does: each look takes time from the query on the same processors. */
const firstPause = 2;
const longestPause = 20;
const mostMilliseconds = 600_000;

export interface AskedQuery {
  readonly rows: (string | null)[][];
  /** From the submission to the status that says it succeeded. */
  readonly milliseconds: number;
  readonly bytesScanned: number;
}

/** Asks the service a question as a client does: submit, look at the status, read the first page. */
export async function ask(site: Site, sqlQuery: string): Promise<AskedQuery> {
  const started = performance.now();
  const submitted = await request(site, 'POST', '/query/submit', { sqlQuery });
  const id = String(submitted.queryExecutionId);
  for (let wait = firstPause; ; wait = Math.min(longestPause, wait * 1.5)) {
    const status = await request(site, 'GET', `/query/${id}/status`);
    const milliseconds = performance.now() - started;
    if (status.state === 'SUCCEEDED') {
      const page = await request(site, 'GET', `/query/${id}/results?maxResults=1000`);
      if (!Array.isArray(page.rows)) throw new Error('the results have no rows');
      return { rows: page.rows, milliseconds, bytesScanned: Number(status.bytesScanned) };
    }
    if (status.state !== 'QUEUED' && status.state !== 'RUNNING')
      throw new Error(`the query ${sqlQuery} ended as ${status.state}: ${status.errorMessage}`);
    if (milliseconds > mostMilliseconds) throw new Error(`the query ${sqlQuery} does not end`);
    await pause(wait);
  }
}

async function request(
  site: Site,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${site.organizationUrl}${path}`, {
    method,
    headers: site.headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (!response.ok || typeof answer !== 'object' || answer === null)
    throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`);
  return { ...answer };
}

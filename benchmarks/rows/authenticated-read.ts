import { newApiKey, newOrganization, newPerson } from '../../acceptance/harness/people.ts';
import { startService } from '../../acceptance/harness/service.ts';
import { startBareServer } from '../bare.ts';
import type { LoadTool } from '../load.ts';
import { median, type Row } from '../row.ts';

const connections = 64;
const barRatio = 0.4;

/** Reads that need a credential, next to a server that does nothing, with the same client in the same run. */
export async function authenticatedReads(tool: LoadTool, seconds: number, rounds: number): Promise<Row[]> {
  const bare = await startBareServer();
  // The limit of the organization is not what is measured.
  const service = await startService({ environment: { MILLRACE_RATE_LIMIT_DEFAULT: '1000000' } });
  try {
    const person = await newPerson(service);
    const organizationName = await newOrganization(service, person);
    const key = await newApiKey(service, person.accessToken, organizationName);
    const token = { authorization: `Bearer ${person.accessToken}` };
    const level = `${service.url}/v1/organization/${organizationName}/ratelimit`;
    const reads = [
      { what: 'rateLimitGet with an access token', url: level, headers: token },
      {
        what: 'rateLimitGet with an API key',
        url: level,
        headers: { authorization: `Bearer ${key.secret}` },
      },
      { what: 'whoAmI with an access token', url: `${service.url}/v1/auth/me`, headers: token },
    ];
    const rows: Row[] = [];
    for (const read of reads) {
      const measured: number[] = [];
      const compared: number[] = [];
      const slowest: number[] = [];
      // Taking turns, so that a noisy moment of the machine falls on both.
      for (let round = 0; round <= rounds; round += 1) {
        const one = await tool.measure({ url: bare.url, connections, seconds });
        const other = await tool.measure({ ...read, connections, seconds });
        if (round === 0) continue; // The first is for warming up.
        compared.push(one.requestsPerSecond);
        measured.push(other.requestsPerSecond);
        slowest.push(other.p99Milliseconds);
      }
      const ratio = median(measured.map((value, index) => value / (compared[index] ?? Number.NaN)));
      rows.push({
        what: read.what,
        figure: `${Math.round(median(measured))}/s, p99 ${median(slowest).toFixed(1)} ms`,
        bare: `${Math.round(median(compared))}/s`,
        ratio,
        bar: `at least ${barRatio * 100} %`,
        reached: ratio >= barRatio,
      });
    }
    return rows;
  } finally {
    bare.stop();
    await service.remove();
  }
}

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startBareServer } from '../bare.ts';
import type { LoadOptions, LoadResult, LoadTool } from '../load.ts';
import { median, type Row } from '../row.ts';
import { message, openSite, residentMebibytes } from '../site.ts';

const connections = 64;
/** Publishing and state, one request a message, next to a server that reads the body and answers. */
export async function publishAndState(tool: LoadTool, seconds: number, rounds: number): Promise<Row[]> {
  const bare = await startBareServer();
  const site = await openSite();
  const { organizationUrl, headers, service } = site;
  try {
    const upsert = JSON.stringify({ keyParts: ['user', '42'], attributes: { visits: 7, name: 'Ada' } });
    const loads: Record<string, LoadOptions> = {
      bare: { url: `${bare.url}/kNUMBER`, headers, body: message, connections, seconds },
      publish: {
        url: `${organizationUrl}/topic/clicks/message?messageKey=kNUMBER`,
        headers,
        body: message,
        connections,
        seconds,
      },
      upsert: { url: `${organizationUrl}/state/upsert`, headers, body: upsert, connections, seconds },
      get: {
        url: `${organizationUrl}/state/get`,
        headers,
        body: '{"keyParts":["user","42"]}',
        connections,
        seconds,
      },
    };
    const results: Record<string, LoadResult[]> = { bare: [], publish: [], upsert: [], get: [] };
    let memory = 0;
    for (let round = 0; round <= rounds; round += 1) {
      for (const [name, load] of Object.entries(loads)) {
        const result = await tool.measure(load);
        if (round > 0) results[name]?.push(result);
        if (name === 'publish') memory = Math.max(memory, residentMebibytes(service));
      }
    }
    const rate = (name: string) => median((results[name] ?? []).map((result) => result.requestsPerSecond));
    const p99 = median((results.publish ?? []).map((result) => result.p99Milliseconds));
    // Of each round on its own: what else the machine does changes from one to the next.
    const ratio = median(
      (results.publish ?? []).map(
        ({ requestsPerSecond }, round) =>
          requestsPerSecond / (results.bare?.[round]?.requestsPerSecond ?? Number.NaN),
      ),
    );
    return [
      {
        what: 'publish one, durable',
        figure: `${Math.round(rate('publish'))}/s, p99 ${p99.toFixed(1)} ms`,
        bare: `${Math.round(rate('bare'))}/s`,
        ratio,
        bar: 'at least 60 %, p99 under 25 ms',
        reached: ratio >= 0.6 && p99 < 25,
      },
      ...(['get', 'upsert'] as const).map((name): Row => {
        const share = rate(name) / rate('publish');
        return {
          what: `state ${name}`,
          figure: `${Math.round(rate(name))}/s`,
          bare: `publish ${Math.round(rate('publish'))}/s`,
          ratio: share,
          bar: 'at least 70 % of publish',
          reached: share >= 0.7,
        };
      }),
      {
        what: 'memory while publishing',
        figure: `${Math.round(memory)} MiB`,
        bar: 'at most 400 MiB',
        reached: memory <= 400,
      },
    ];
  } finally {
    bare.stop();
    await service.remove();
  }
}

/** NDJSON of a thousand messages a request, next to a loop that inserts the same rows into SQLite. */
export async function publishBatches(seconds: number, rounds: number): Promise<Row> {
  const site = await openSite();
  const url = `${site.organizationUrl}/topic/clicks/messages?messageKeyPath=/user`;
  const batch = Array.from({ length: 1000 }, (_value, index) =>
    message.trimEnd().replace('user-000042', `user-${String(index).padStart(6, '0')}`),
  ).join('\n');
  const bareLoop = fileURLToPath(new URL('../bare-sqlite.ts', import.meta.url));
  const measured: number[] = [];
  const compared: number[] = [];
  try {
    for (let round = 0; round <= rounds; round += 1) {
      const bare = execFileSync(process.execPath, [bareLoop, String(seconds), message], { encoding: 'utf8' });
      const rows = await publishFor(url, site.headers, batch, seconds);
      if (round === 0) continue;
      compared.push(Number(bare));
      measured.push(rows);
    }
  } finally {
    await site.service.remove();
  }
  const ratio = median(measured.map((value, index) => value / (compared[index] ?? Number.NaN)));
  return {
    what: 'publish NDJSON, 1,000 a request',
    figure: `${Math.round(median(measured))} messages/s`,
    bare: `${Math.round(median(compared))} rows/s`,
    ratio,
    bar: 'at least 40 %',
    reached: ratio >= 0.4,
  };
}

async function publishFor(
  url: string,
  headers: Readonly<Record<string, string>>,
  batch: string,
  seconds: number,
): Promise<number> {
  const started = performance.now();
  let published = 0;
  const publisher = async () => {
    while (performance.now() - started < seconds * 1000) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/x-ndjson' },
        body: batch,
      });
      const answer: unknown = await response.json();
      if (
        typeof answer !== 'object' ||
        answer === null ||
        !('accepted' in answer) ||
        answer.accepted !== 1000
      ) {
        throw new Error(`a batch was not accepted: ${JSON.stringify(answer)}`);
      }
      published += 1000;
    }
  };
  await Promise.all(Array.from({ length: 8 }, publisher));
  return published / ((performance.now() - started) / 1000);
}

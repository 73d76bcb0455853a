import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGzip } from 'node:zlib';
import { ask } from '../query.ts';
import { median, type Row } from '../row.ts';
import { openSite, type Site } from '../site.ts';
import { questions, visitsFrom } from '../visits.ts';

const seed = 20_261_115;
const batchSize = 5_000;
const publishers = 4;
const filesOfInput = 4;

/** Questions about visits through the API, next to DuckDB alone on the same files, checked against the input. */
export async function analyticalQueries(rows: number, rounds: number): Promise<Row[]> {
  const inputs = await mkdtemp(join(tmpdir(), 'millrace-visits-'));
  // No merging beside the queries: alone they are compared with DuckDB alone.
  const site = await openSite({ MILLRACE_LAKE_UPKEEP_SECONDS: '86400' });
  try {
    await publishVisits(site, inputs, rows);
    const files = await lakeFiles(site, rows);
    const sql = questions.map((question) => question.sql);
    const bare = await askBare(
      [`CREATE VIEW visits AS FROM read_parquet([${files}], hive_partitioning = false)`],
      sql,
      rounds,
    );
    const truth = await askBare([`CREATE TABLE visits AS FROM read_json('${inputs}/*.gz')`], sql, 1);
    const measured: Row[] = [];
    let different = 0;
    let total = 0;
    let bareTotal = 0;
    for (const [index, { name, sql: question }] of questions.entries()) {
      const asked: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const answer = await ask(site, question);
        asked.push(answer.milliseconds);
        if (JSON.stringify(answer.rows) !== JSON.stringify(truth[index]?.rows)) different += 1;
      }
      const alone = median(bare[index]?.milliseconds ?? []);
      const mine = median(asked);
      const allowed = alone * 1.1 + 60;
      total += mine;
      bareTotal += alone;
      measured.push({
        what: `query: ${name}`,
        figure: `${mine.toFixed(0)} ms`,
        bare: `${alone.toFixed(0)} ms`,
        ratio: mine / alone,
        bar: `at most ${allowed.toFixed(0)} ms`,
        reached: mine <= allowed,
      });
    }
    const contrast = ['by type', 'revenue by country', 'durations'];
    const chosen = sql.filter((_question, index) => contrast.includes(questions[index]?.name ?? ''));
    const gzipped = await askBare([`CREATE VIEW visits AS FROM read_json('${inputs}/*.gz')`], chosen, 1);
    const slow = gzipped.reduce((sum, answer) => sum + median(answer.milliseconds), 0);
    const fast = measured
      .filter((row) => contrast.some((name) => row.what === `query: ${name}`))
      .reduce((sum, row) => sum + Number.parseFloat(row.figure), 0);
    return [
      ...measured,
      {
        what: `15 queries over ${rows} rows`,
        figure: `${total.toFixed(0)} ms, ${different} answers differ`,
        bare: `${bareTotal.toFixed(0)} ms`,
        ratio: total / bareTotal,
        bar: 'every answer as DuckDB gives it over the input',
        reached: different === 0,
      },
      {
        what: 'three of them over gzip NDJSON',
        figure: `${fast.toFixed(0)} ms`,
        bare: `${slow.toFixed(0)} ms`,
        ratio: fast / slow,
        bar: 'for contrast',
        reached: fast < slow,
      },
    ];
  } finally {
    await site.service.remove();
    await rm(inputs, { recursive: true });
  }
}

async function publishVisits(site: Site, inputs: string, rows: number): Promise<void> {
  const next = visitsFrom(seed);
  let made = 0;
  let shown = 0;
  for (let file = 0; file < filesOfInput; file += 1) {
    const last = Math.ceil((rows * (file + 1)) / filesOfInput);
    const sending = new Set<Promise<void>>();
    async function* batches(): AsyncGenerator<string> {
      while (made < last) {
        const count = Math.min(batchSize, last - made);
        const batch = `${Array.from({ length: count }, next).join('\n')}\n`;
        made += count;
        if (sending.size >= publishers) await Promise.race(sending);
        const sent = publish(site, batch).finally(() => sending.delete(sent));
        sending.add(sent);
        if (made - shown >= 500_000) {
          shown = made;
          process.stderr.write(`  published ${made} visits\n`);
        }
        yield batch;
      }
    }
    const output = createWriteStream(join(inputs, `visits-${file}.ndjson.gz`));
    await pipeline(batches(), createGzip({ level: 1 }), output);
    await Promise.all(sending);
  }
}

async function publish(site: Site, batch: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${site.organizationUrl}/topic/visits/messages?messageKeyPath=/session_id`, {
      method: 'POST',
      headers: { ...site.headers, 'content-type': 'application/x-ndjson' },
      body: batch,
    });
    const answer = await response.text();
    if (response.status === 503) {
      await new Promise((resolve) =>
        setTimeout(resolve, 1000 * Number(response.headers.get('retry-after') ?? 1)),
      );
      continue;
    }
    if (!response.ok || !answer.includes('"rejected":0'))
      throw new Error(`a batch was not accepted: ${answer}`);
    return;
  }
}

/** The files of the topic as a list for DuckDB, once all rows are in them. */
async function lakeFiles(site: Site, rows: number): Promise<string> {
  const counted = await ask(site, 'SELECT count(*) FROM visits');
  if (counted.rows[0]?.[0] !== String(rows)) throw new Error(`${counted.rows[0]?.[0]} of ${rows} are there`);
  // Files that were merged into others stay for an hour, so the list is asked for.
  const response = await fetch(`${site.organizationUrl}/topic/visits/files?maxResults=1000`, {
    headers: site.headers,
  });
  const { files }: { files: { key: string }[] } = JSON.parse(await response.text());
  const root = join(site.service.dataDirectory, 'objects', 'objects', 'lake');
  return files.map(({ key }) => `'${join(root, key)}'`).join(', ');
}

interface BareAnswer {
  readonly rows: (string | null)[][];
  readonly milliseconds: number[];
}

async function askBare(setup: string[], asked: string[], rounds: number): Promise<BareAnswer[]> {
  const program = fileURLToPath(new URL('../bare-duckdb.ts', import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ setup, questions: asked, rounds }));
  return JSON.parse(await text(child.stdout));
}

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Millrace } from '@millrace/client';
import { bundle } from '../bundle.ts';
import { chartOf } from '../chart.ts';
import { CommandError } from '../command.ts';
import { patience } from '../connection.ts';
import { type Output, styled } from '../output.ts';
import { bytesText, progressBar } from '../progress.ts';
import { tableOf } from '../table.ts';
import { visits } from './visits.ts';

export interface Tour {
  readonly url: string;
  readonly dataDirectory: string;
  readonly events: number;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** What the tour leaves behind, to go on with. */
export interface Souvenirs {
  readonly organization: string;
  readonly username: string;
  readonly apiKey: string;
  /** What was shown, for programs. */
  readonly figures: Figures;
}

export interface Figures {
  readonly published: number;
  /** Visits by country, as the task counted them. */
  readonly state: Readonly<Record<string, number>>;
  readonly answers: readonly {
    readonly sql: string;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly (string | null)[])[];
  }[];
  readonly files: readonly { readonly key: string; readonly size: number }[];
}

const username = 'demo';
const organization = 'demo';
const stuckMilliseconds = 60_000;

const questions: readonly { readonly ask: string; readonly sql: string; readonly chart?: true }[] = [
  {
    ask: 'How many visits are there?',
    sql: 'SELECT count(*) AS visits, count(DISTINCT user) AS people FROM visits',
  },
  {
    ask: 'When do people come?',
    sql: "SELECT date_trunc('hour', seen_at) AS hour, count(*) AS visits FROM visits GROUP BY hour ORDER BY hour",
    chart: true,
  },
  {
    ask: 'Which pages do they see?',
    sql: 'SELECT page, count(*) AS views FROM visits GROUP BY page ORDER BY views DESC LIMIT 10',
    chart: true,
  },
  {
    ask: 'Where is money made? (purchases is the topic that the task publishes to)',
    sql: 'SELECT country, count(*) AS purchases, round(sum(revenue), 2) AS revenue FROM purchases GROUP BY country ORDER BY revenue DESC',
  },
  {
    ask: 'Do state and files agree?',
    sql: `SELECT country, count(*) AS in_files, max(CAST(attributes->>'visits' AS BIGINT)) AS in_state
FROM visits JOIN _state ON merged_key = 'country:' || country GROUP BY country ORDER BY in_files DESC`,
  },
];

/** Shows everything once, on a service that has just been started. */
export async function tour({ url, dataDirectory, events, output, signal }: Tour): Promise<Souvenirs> {
  const show = (lines: readonly string[]) => {
    if (!output.json) for (const line of lines) output.line(`   ${line}`);
  };
  const step = (text: string) => output.note('\n', styled('bold', text));
  const retry = patience(output);
  const visitor = new Millrace({ endpoint: url, retry });

  step('1. Sign up, and make an organization');
  const password = randomBytes(12).toString('base64url');
  const form = { username, email: 'demo@example.com', password, tosAgreed: true, marketingAgreed: false };
  await visitor.authentication.signUp(form, { signal });
  await visitor.authentication.confirm({ username, code: await mailedCode(dataDirectory) }, { signal });
  const { result } = await visitor.authentication.signIn({ usernameOrEmail: username, password }, { signal });
  if (result === undefined) throw new CommandError('Signing in did not work.');
  const person = visitor.withSession(result);
  await person.organizations.create(organization, { signal });
  const key = await person
    .withOrganization(organization)
    .keys.create({ description: 'the tour' }, { signal });
  const client = new Millrace({ endpoint: url, apiKey: key.secret, organization, retry });
  output.note(`   ${username} is the first ADMIN of ${organization}`);

  step('2. Declare topics, and deploy a task that reads one and publishes to the other');
  await client.topics.set('visits', { batch: {}, streams: [{ name: 'visits' }] }, { signal });
  await client.topics.set('purchases', { batch: {} }, { signal });
  const { zip } = await bundle(fileURLToPath(new URL('./task.ts', import.meta.url)));
  const { version } = await client.tasks.deploy(
    'count-visits',
    zip,
    {
      handler: 'index.handler',
      inputQueueNames: ['visits'],
      outputQueueNames: ['purchases'],
      switchToNow: true,
      runtime: 'NODEJS26_X',
      batchSize: 1000,
      concurrency: 1,
    },
    { signal },
  );
  output.note(`   count-visits runs as version ${version}, ${bytesText(zip.length)}`);

  step(`3. Publish ${events.toLocaleString('en-US')} visits`);
  const bar = progressBar(output, '   publishing');
  const publisher = client.topics.publisher('visits', {
    keyPath: '/user',
    idPath: '/id',
    batchSize: 2000,
    onProgress: ({ accepted }) => bar.update(accepted, events),
    signal,
  });
  const started = performance.now();
  try {
    bar.update(0, events);
    for (const visit of visits(events, Date.now())) await publisher.publish(visit);
    await publisher.flush();
  } finally {
    bar.end();
  }
  const { accepted } = publisher.totals;
  const seconds = (performance.now() - started) / 1000;
  output.note(`   ${accepted.toLocaleString('en-US')} durable in ${seconds.toFixed(1)} s`);

  step('4. The task counts them into state while they arrive');
  await counted(client, events, output, signal);
  const entries = await Array.fromAsync(client.state.list(['country'], { signal }));
  const rows = entries
    .map(({ mergedKey, attributes }) => [mergedKey, String(attributes.visits)])
    .sort((one, other) => Number(other[1]) - Number(one[1]));
  show(tableOf(['state', 'visits'], rows));

  step('5. Ask with SQL: everything that was acknowledged is there');
  const answers: Figures['answers'][number][] = [];
  for (const { ask, sql, chart } of questions) {
    output.note('\n   ', styled('cyan', ask), '\n   ', styled('dim', sql.replaceAll('\n', '\n   ')));
    const answer = await client.queries.run(sql, { signal });
    const lists = await Array.fromAsync(answer.lists());
    const names = answer.columns.map((column) => column.name);
    show(chart === true ? chartOf(names, lists, 72) : tableOf(names, lists));
    answers.push({ sql, columns: names, rows: lists });
    output.note(styled('dim', `   ${answer.status.executionTimeMs ?? 0} ms`));
  }

  step('6. The same as Parquet files, which any tool can read');
  const files = await Array.fromAsync(client.topics.files('visits', { signal }));
  show(files.map(({ key: file, size }) => `${file}  ${bytesText(size)}`));
  const state = Object.fromEntries(
    entries.map(({ keyParts, attributes }) => [keyParts.at(-1) ?? '', Number(attributes.visits)]),
  );
  const figures = { published: accepted, state, answers, files };
  return { organization, username, apiKey: key.secret, figures };
}

/** The code in the mail that would have been sent. */
async function mailedCode(dataDirectory: string): Promise<string> {
  const text = await readFile(join(dataDirectory, 'outbox.jsonl'), 'utf8');
  const mail: { text: string } = JSON.parse(text.trim().split('\n').at(-1) ?? '{}');
  const code = /^\d{6}$/m.exec(mail.text)?.[0];
  if (code === undefined) throw new CommandError('There is no code in the outbox.');
  return code;
}

/** Waits until the task has seen every visit, for as long as it goes on with them. */
async function counted(client: Millrace, events: number, output: Output, signal: AbortSignal): Promise<void> {
  const bar = progressBar(output, '   counting');
  let before = 0;
  let giveUp = AbortSignal.timeout(stuckMilliseconds);
  try {
    for (;;) {
      signal.throwIfAborted();
      if (giveUp.aborted) throw new CommandError('The task has counted no visit for a minute.');
      let sum = 0;
      for await (const { attributes } of client.state.list(['country'], { signal }))
        sum += Number(attributes.visits);
      bar.update(sum, events);
      if (sum >= events) return;
      if (sum > before) giveUp = AbortSignal.timeout(stuckMilliseconds);
      before = sum;
      await pause(100, undefined, { signal });
    }
  } finally {
    bar.end();
  }
}

import { createWriteStream } from 'node:fs';
import { readFile, rename, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { bytesText, progressBar } from '../progress.ts';
import { agreeTo } from '../prompt.ts';
import { openRecords, type RecordFormat, recordLines } from '../records.ts';

const topic = { name: 'topic', summary: 'the name of the topic' } as const;
const mostShown = 10;

function formatOf(text: string | undefined): RecordFormat | undefined {
  if (text === undefined || text === 'csv' || text === 'ndjson') return text;
  throw new UsageError(`--format is ndjson or csv, not "${text}".`);
}

async function publish(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const { topics } = await invocation.client();
  const name = given.text('topic');
  const message = options.text('message');
  if (message !== undefined) {
    const key = options.text('message-key');
    if (key === undefined) throw new UsageError('A single message needs --message-key.');
    const answer = await topics.publish(name, message, {
      key,
      id: options.text('message-id'),
      mediaType: 'application/json',
      signal,
    });
    output.value(answer, () => `${answer.messageId}${answer.duplicate ? '  duplicate' : ''}`);
    return;
  }
  const keyPath = options.text('key');
  const idPath = options.text('id');
  const file = options.text('file');
  if (file === undefined && process.stdin.isTTY === true)
    output.note('Reading messages from the terminal, one JSON object a line; end with ctrl-D.');
  const source = openRecords(file, formatOf(options.text('format')));
  const size = file === undefined || file === '-' ? undefined : (await stat(file)).size;
  let rejected = 0;
  const publisher = topics.publisher(name, {
    ...(keyPath === undefined ? {} : { keyPath }),
    ...(idPath === undefined ? {} : { idPath }),
    // One request at a time, so that the order of the file is the order of each key.
    concurrency: 1,
    batchSize: 5_000,
    mostPending: 20_000,
    signal,
    onRejected: ({ code, detail }) => {
      rejected += 1;
      if (rejected <= mostShown) output.note(`rejected: ${detail} (${code})`);
    },
  });
  const bar = progressBar(output, `publishing to ${name}`);
  const started = performance.now();
  let read = 0;
  try {
    for await (const line of recordLines(source)) {
      read += 1;
      await publisher.publishLine(line);
      const { accepted, duplicates } = publisher.totals;
      const done = accepted + duplicates + rejected;
      // How many there are is not known; how far the file is read tells it well enough.
      bar.update(
        done,
        size === undefined || source.bytes() === 0 ? undefined : (read * size) / source.bytes(),
      );
    }
    const totals = await publisher.flush();
    const seconds = (performance.now() - started) / 1000;
    bar.end(
      `Published ${totals.accepted.toLocaleString('en-US')} messages to ${name} in ${seconds.toFixed(1)} s` +
        ` (${Math.round(totals.accepted / Math.max(seconds, 0.001)).toLocaleString('en-US')}/s)` +
        `${totals.duplicates > 0 ? `, ${totals.duplicates} duplicates` : ''}${rejected > 0 ? `, ${rejected} rejected` : ''}.`,
    );
    if (output.json) output.line(JSON.stringify(totals));
    if (rejected > 0) throw new CommandError(`${rejected} messages were rejected.`);
  } finally {
    bar.end();
  }
}

async function download(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const { topics } = await invocation.client();
  const key = given.text('key');
  const file = options.text('output') ?? basename(key);
  const bar = progressBar(output, file, bytesText);
  const stream = await topics.download(given.text('topic'), key, {
    signal,
    onProgress: ({ bytes, total }) => bar.update(bytes, total),
  });
  if (file === '-') await pipeline(Readable.fromWeb(stream), process.stdout, { signal, end: false });
  else {
    // Under another name until it is whole.
    await pipeline(Readable.fromWeb(stream), createWriteStream(`${file}.part`), { signal });
    await rename(`${file}.part`, file);
  }
  bar.end(file === '-' ? undefined : `Saved ${file}.`);
}

async function setTopic(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const { topics } = await invocation.client();
  const file = options.text('file');
  const streams = options.many('stream');
  const retention = options.number('retention-days', { least: 1, most: 3660 });
  const definition =
    file === undefined
      ? {
          ...(options.flag('batch') || retention !== undefined
            ? { batch: retention === undefined ? {} : { retentionInDays: retention } }
            : {}),
          ...(streams.length === 0 ? {} : { streams: streams.map((name) => ({ name })) }),
        }
      : JSON.parse(await readFile(file, 'utf8'));
  const { version } = await topics.set(given.text('topic'), definition, {
    expectedVersion: options.number('expected-version'),
    signal,
  });
  output.note(`Defined ${given.text('topic')}; the topics have version ${version}.`);
}

export const topicCommands: readonly Command[] = [
  {
    path: ['topic', 'list'],
    summary: 'List the topics that are defined',
    examples: ['millrace topic list', 'millrace topic list --json'],
    run: async ({ client, output, signal }) => {
      const definitions = await (await client()).topics.definitions({ signal });
      if (output.json) return output.line(JSON.stringify(definitions));
      output.list(Object.entries(definitions.topics), {
        topic: ([name]) => name,
        files: ([, { batch }]) => (batch === undefined ? '' : `${batch.retentionInDays ?? 90} days`),
        streams: ([, { streams }]) => streams?.map((stream) => stream.name).join(', '),
        store: ([, { store }]) => (store === undefined ? '' : 'yes'),
      });
      output.note(
        `Undefined topics are ${definitions.allowUndefinedTopics ? 'allowed' : 'refused'}. Version ${definitions.version}.`,
      );
    },
  },
  {
    path: ['topic', 'set'],
    summary: 'Define or replace a topic',
    arguments: [topic],
    options: {
      batch: { summary: 'messages land in files that can be queried' },
      'retention-days': { value: 'days', summary: 'how long files are kept; 90 unless given' },
      stream: { value: 'name', many: true, summary: 'a stream that tasks may read; may be repeated' },
      file: { value: 'file', summary: 'the whole definition as JSON, also with a store' },
      'expected-version': { value: 'number', summary: 'only if the topics have this version' },
    },
    examples: [
      'millrace topic set clicks --batch --stream clicks',
      'millrace topic set users --file users.json',
    ],
    run: setTopic,
  },
  {
    path: ['topic', 'delete'],
    summary: 'Delete the definition of a topic, and its files after a day',
    arguments: [topic],
    options: { yes: { short: 'y', summary: 'do not ask' } },
    examples: ['millrace topic delete clicks --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo(`Delete the topic ${given.text('topic')}?`, options.flag('yes'));
      await (await client()).topics.delete(given.text('topic'), { signal });
      output.note(`Deleted ${given.text('topic')}.`);
    },
  },
  {
    path: ['topic', 'publish'],
    summary: 'Publish messages from a file, stdin or the command line',
    description:
      'NDJSON, or CSV with a row of names, gzip if the name ends in .gz. With --id it can be run again: duplicates are dropped.',
    arguments: [topic],
    options: {
      file: { short: 'f', value: 'file', summary: 'where to read from; stdin unless given' },
      format: { value: 'ndjson|csv', summary: 'of what is read; by the name of the file unless given' },
      key: { value: '/pointer', summary: 'JSON pointer to the key in each message' },
      id: { value: '/pointer', summary: 'JSON pointer to the id in each message' },
      message: { short: 'm', value: 'json', summary: 'one message, instead of a file' },
      'message-key': { value: 'key', summary: 'the key of the one message' },
      'message-id': { value: 'id', summary: 'the id of the one message' },
    },
    examples: [
      'millrace topic publish clicks --file clicks.ndjson --key /user --id /id',
      'cat visits.csv | millrace topic publish visits --format csv --key /session',
      `millrace topic publish clicks --message '{"page":"/"}' --message-key user-42`,
    ],
    run: publish,
  },
  {
    path: ['topic', 'tail'],
    summary: 'Show messages as they are accepted',
    arguments: [topic],
    options: {
      key: { value: 'key', summary: 'only messages of this key' },
      limit: { value: 'number', summary: 'end after so many' },
    },
    examples: ['millrace topic tail clicks', 'millrace topic tail clicks --key user-42 --json'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const limit = options.number('limit', { least: 1 }) ?? Number.POSITIVE_INFINITY;
      let seen = 0;
      output.note(`Waiting for messages of ${given.text('topic')}; ctrl-C ends it.`);
      for await (const message of (await client()).topics.tail(given.text('topic'), {
        key: options.text('key'),
        onDropped: (data) => output.note(`too slow, left out: ${data}`),
        signal,
      })) {
        output.value(message, () =>
          [
            output.styled('dim', message.acceptedAt),
            output.styled('cyan', message.messageKey),
            typeof message.body === 'string' ? message.body : JSON.stringify(message.body),
          ].join('  '),
        );
        seen += 1;
        if (seen >= limit) return;
      }
    },
  },
  {
    path: ['topic', 'files'],
    summary: 'List the files of a topic',
    arguments: [topic],
    options: {
      prefix: { value: 'text', summary: 'only keys that begin so, such as year=2026/month=11/' },
      limit: { value: 'number', summary: 'at most so many; 1000 unless given' },
    },
    examples: ['millrace topic files clicks', 'millrace topic files clicks --prefix year=2026/month=11/'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const limit = options.number('limit', { least: 1 }) ?? 1000;
      const files = [];
      for await (const file of (await client()).topics.files(given.text('topic'), {
        prefix: options.text('prefix'),
        signal,
      })) {
        files.push(file);
        if (files.length >= limit) break;
      }
      output.list(files, {
        key: (file) => file.key,
        size: (file) => bytesText(file.size),
        modified: (file) => file.lastModified,
      });
    },
  },
  {
    path: ['topic', 'download'],
    summary: 'Download one file of a topic',
    arguments: [topic, { name: 'key', summary: 'its key, from `topic files`' }],
    options: {
      output: { short: 'o', value: 'file', summary: 'where to; its own name unless given, - for stdout' },
    },
    examples: [
      'millrace topic download clicks "$(millrace topic files clicks --json --limit 1 | jq -r .key)"',
    ],
    run: download,
  },
  {
    path: ['topic', 'schema', 'get'],
    summary: 'Show the schema of a topic',
    arguments: [topic],
    examples: ['millrace topic schema get clicks'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { schema } = await (await client()).topics.schema(given.text('topic'), { signal });
      output.line(output.json ? schema : JSON.stringify(JSON.parse(schema), null, 2));
    },
  },
  {
    path: ['topic', 'schema', 'set'],
    summary: 'Set the schema of a topic: types and order of its columns',
    arguments: [topic, { name: 'file', summary: 'a JSON Schema' }],
    examples: ['millrace topic schema set clicks clicks.schema.json'],
    run: async ({ client, arguments: given, output, signal }) => {
      const schema = await readFile(given.text('file'), 'utf8');
      await (await client()).topics.setSchema(given.text('topic'), schema, { signal });
      output.note(`Set the schema of ${given.text('topic')}.`);
    },
  },
  {
    path: ['topic', 'schema', 'recalculate'],
    summary: 'Infer the schema from what was ingested',
    arguments: [topic],
    examples: ['millrace topic schema recalculate clicks'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { schema } = await (await client()).topics.recalculateSchema(given.text('topic'), { signal });
      output.line(output.json ? schema : JSON.stringify(JSON.parse(schema), null, 2));
    },
  },
];

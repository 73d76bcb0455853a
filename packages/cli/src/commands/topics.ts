import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { amountOf } from '../amount.ts';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { styled } from '../output.ts';
import { bytesText, progressBar } from '../progress.ts';
import { agreeTo } from '../prompt.ts';
import { safeJson } from '../safe-text.ts';
import { printText, saveTo } from '../save.ts';
import { publish } from './publish.ts';

const topic = { name: 'topic', summary: 'the name of the topic' } as const;
async function readJson(file: string): Promise<object> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new CommandError(`${file} cannot be read: ${error.message}`);
  });
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new CommandError(`${file} is not a JSON object.`);
}

async function download(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const key = given.text('key');
  const file = options.text('output') ?? basename(key);
  if (file === '-' && process.stdout.isTTY === true)
    throw new UsageError('Files are Parquet, which is not for terminals: send stdout to a file.');
  const { topics } = await invocation.client();
  const bar = progressBar(output, file, bytesText);
  try {
    const stream = await topics.download(given.text('topic'), key, {
      signal,
      onProgress: ({ bytes, total }) => bar.update(bytes, total),
    });
    if (file === '-') return await printText(stream, signal);
    await saveTo(file, stream, signal);
    bar.end();
    output.done({ file }, `Saved ${file}.`);
  } finally {
    bar.end();
  }
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
      : await readJson(file);
  const { version } = await topics.set(given.text('topic'), definition, {
    expectedVersion: options.number('expected-version'),
    signal,
  });
  output.done(
    { topic: given.text('topic'), version },
    `Defined ${given.text('topic')}; the topics have version ${version}.`,
  );
}

export const topicCommands: readonly Command[] = [
  {
    path: ['topic', 'list'],
    summary: 'List the topics that are defined',
    examples: ['millrace topic list', 'millrace topic list --json'],
    run: async ({ client, output, signal }) => {
      const definitions = await (await client()).topics.definitions({ signal });
      if (output.json) return output.line(safeJson(definitions));
      output.list(Object.entries(definitions.topics), {
        topic: ([name]) => name,
        files: ([, { batch }]) => (batch === undefined ? '' : amountOf(batch.retentionInDays ?? 90, 'day')),
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
      await agreeTo({ signal }, `Delete the topic ${given.text('topic')}?`, options.flag('yes'));
      await (await client()).topics.delete(given.text('topic'), { signal });
      output.done({ deleted: given.text('topic') }, `Deleted ${given.text('topic')}.`);
    },
  },
  {
    path: ['topic', 'publish'],
    summary: 'Publish messages from a file, stdin or the command line',
    description:
      'NDJSON, or CSV with a row of names, gzip if the name ends in .gz. With --id it can be run again: duplicates are dropped.\nCtrl-C stops after what is on its way, and tells how many messages were published.',
    arguments: [topic],
    options: {
      file: { short: 'f', value: 'file', summary: 'where to read from; stdin unless given' },
      format: { value: 'ndjson|csv', summary: 'of what is read; by the name of the file unless given' },
      delimiter: { value: 'character', summary: 'between the fields of CSV; a comma unless given, or tab' },
      text: { summary: 'leave every field of CSV a text, also numbers' },
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
        output.value(message, () => [
          styled('dim', message.acceptedAt),
          '  ',
          styled('cyan', message.messageKey),
          '  ',
          typeof message.body === 'string' ? message.body : safeJson(message.body),
        ]);
        seen += 1;
        if (seen >= limit) return;
      }
      signal.throwIfAborted();
      throw new CommandError('The service has ended the tail.');
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
      'millrace topic download clicks organization=acme/topic=clicks/year=2026/month=11/day=15/hour=04/AHCj.parquet',
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
      output.line(safeJson(JSON.parse(schema), output.json ? undefined : 2));
    },
  },
  {
    path: ['topic', 'schema', 'set'],
    summary: 'Set the schema of a topic: types and order of its columns',
    arguments: [topic, { name: 'file', summary: 'a JSON Schema' }],
    examples: ['millrace topic schema set clicks clicks.schema.json'],
    run: async ({ client, arguments: given, output, signal }) => {
      const schema = await readJson(given.text('file'));
      await (await client()).topics.setSchema(given.text('topic'), schema, { signal });
      output.done({ topic: given.text('topic') }, `Set the schema of ${given.text('topic')}.`);
    },
  },
  {
    path: ['topic', 'schema', 'recalculate'],
    summary: 'Infer the schema from what was ingested',
    arguments: [topic],
    examples: ['millrace topic schema recalculate clicks'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { schema } = await (await client()).topics.recalculateSchema(given.text('topic'), { signal });
      output.line(safeJson(JSON.parse(schema), output.json ? undefined : 2));
    },
  },
];

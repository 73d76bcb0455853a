import type { Millrace, QueryRows } from '@millrace/client';
import { amountOf } from '../amount.ts';
import { chartOf } from '../chart.ts';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { type Output, styled } from '../output.ts';
import { bytesText } from '../progress.ts';
import { readInput } from '../prompt.ts';
import { queryPrompt } from '../query-prompt.ts';
import { printText, saveTo } from '../save.ts';
import { oneLine, tableOf } from '../table.ts';

const id = { name: 'id', summary: 'its queryExecutionId' } as const;
const formats = ['table', 'json', 'csv', 'parquet'] as const;
const mostInTable = 1_000;
const resultOptions = {
  output: { short: 'o', value: 'format', summary: 'table, json, csv or parquet' },
  file: { value: 'file', summary: 'where json, csv or parquet goes; stdout unless given' },
  chart: { summary: 'draw a chart: bars, or a line when the first column is a time' },
} as const;

/** Runs one query and prints it as asked. */
async function run(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const typed = given.many('sql').join(' ');
  if (typed === '' && process.stdin.isTTY === true)
    throw new UsageError('Give a statement, or run `millrace query` for a prompt.');
  const sql = typed === '' || typed === '-' ? await readInput(invocation) : typed;
  if (sql.trim() === '') throw new UsageError('There is no statement, neither as <sql> nor on stdin.');
  const format = formatOf(invocation);
  const client = await invocation.client();
  if (format !== 'table') {
    const queryExecutionId = await client.queries.submit(sql, { signal });
    return exportTo(invocation, client, queryExecutionId, format);
  }
  const started = performance.now();
  const onStatus = ({ state }: { readonly state: string }) =>
    output.draw(`${state.toLowerCase()} ${((performance.now() - started) / 1000).toFixed(1)} s`);
  try {
    const rows = await client.queries.run(sql, { signal, onStatus });
    output.erase();
    await printRows(output, rows, options.flag('chart'));
  } finally {
    output.erase();
  }
}

type Format = (typeof formats)[number];

function formatOf({ options, output }: Invocation): Format {
  const typed = options.text('output') ?? (output.json ? 'json' : 'table');
  const format = formats.find((name) => name === typed);
  if (format === undefined) throw new UsageError(`--output is one of ${formats.join(', ')}.`);
  if (format === 'table' && options.text('file') !== undefined)
    throw new UsageError('--file goes with --output json, csv or parquet.');
  if (format === 'parquet' && options.text('file') === undefined && process.stdout.isTTY === true)
    throw new UsageError('Parquet is not for terminals: give --file or send stdout to a file.');
  return format;
}

/** Waits for a query and writes its whole result. */
async function exportTo(
  { options, output, signal }: Invocation,
  { queries }: Millrace,
  queryExecutionId: string,
  format: Exclude<Format, 'table'>,
): Promise<void> {
  const file = options.text('file');
  try {
    const status = await queries.wait(queryExecutionId, { signal });
    if (status.state !== 'SUCCEEDED')
      throw new CommandError(status.errorMessage ?? `The query was ${status.state.toLowerCase()}.`);
    const stream = await queries.export(queryExecutionId, format, { signal });
    if (file === undefined) return await printText(stream, signal);
    await saveTo(file, stream, signal);
    output.note(`Saved ${file}.`);
  } catch (error) {
    if (signal.aborted) await queries.cancel(queryExecutionId).catch(() => {});
    throw error;
  }
}

/** Prints the rows of a query as a table, or as a chart, and how it went. */
export async function printRows(output: Output, rows: QueryRows, chart: boolean): Promise<void> {
  const shown: (readonly (string | null)[])[] = [];
  let more = false;
  for await (const row of rows.lists()) {
    if (shown.length === mostInTable) {
      more = true;
      break;
    }
    shown.push(row);
  }
  const names = rows.columns.map((column) => column.name);
  const lines = chart ? chartOf(names, shown, process.stdout.columns || 80) : tableOf(names, shown);
  for (const line of lines) output.line(line);
  const { executionTimeMs = 0, bytesScanned = 0 } = rows.status;
  const count = more
    ? `the first ${amountOf(mostInTable, 'row')}; --output csv gives all`
    : amountOf(shown.length, 'row');
  output.note(styled('dim', `${count}, ${executionTimeMs} ms, ${bytesText(bytesScanned)} read`));
}

export const queryCommands: readonly Command[] = [
  {
    path: ['query'],
    summary: 'Ask one question after the other, with history',
    description: 'SQL that ends with ; is run. \\d lists tables, \\chart draws the last answer, \\q ends.',
    examples: ['millrace query'],
    run: async (invocation) => {
      if (process.stdin.isTTY !== true)
        throw new UsageError('There is no terminal. `millrace query run <sql>` runs one query.');
      await queryPrompt(invocation, printRows);
    },
  },
  {
    path: ['query', 'run'],
    summary: 'Run a query and print its rows',
    arguments: [
      { name: 'sql', summary: 'the statement; stdin when left out or -', optional: true, many: true },
    ],
    options: resultOptions,
    examples: [
      'millrace query run "SELECT page, count(*) AS views FROM clicks GROUP BY page ORDER BY views DESC"',
      'millrace query run "SELECT * FROM clicks" --output csv > clicks.csv',
      'millrace query run --chart "SELECT country, count(*) FROM visits GROUP BY 1 ORDER BY 2 DESC"',
    ],
    run,
  },
  {
    path: ['query', 'status'],
    summary: 'Show the status of a query',
    arguments: [id],
    examples: ['millrace query status q4Jm2nXv5KpLw3RtYb7Zc1'],
    run: async ({ client, arguments: given, output, signal }) => {
      const status = await (await client()).queries.status(given.text('id'), { signal });
      output.value(status, () =>
        [
          `${status.state}  ${oneLine(status.sqlQuery, 100)}`,
          ...(status.errorMessage === undefined ? [] : [status.errorMessage]),
        ].join('\n'),
      );
    },
  },
  {
    path: ['query', 'results'],
    summary: 'Print the rows of a query that has succeeded',
    arguments: [id],
    options: resultOptions,
    examples: [
      'millrace query results q4Jm2nXv5KpLw3RtYb7Zc1',
      'millrace query results q4Jm2nXv5KpLw3RtYb7Zc1 --output parquet --file result.parquet',
    ],
    run: async (invocation) => {
      const { arguments: given, options, output, signal } = invocation;
      const format = formatOf(invocation);
      const client = await invocation.client();
      if (format !== 'table') return exportTo(invocation, client, given.text('id'), format);
      const status = await client.queries.status(given.text('id'), { signal });
      await printRows(output, await client.queries.rows(status, { signal }), options.flag('chart'));
    },
  },
  {
    path: ['query', 'history'],
    summary: 'List the latest queries',
    options: { limit: { value: 'number', summary: 'at most so many; 20 unless given' } },
    examples: ['millrace query history --limit 5'],
    run: async ({ client, options, output, signal }) => {
      const maxResults = options.number('limit', { least: 1, most: 100 }) ?? 20;
      output.list(await (await client()).queries.history({ maxResults, signal }), {
        id: (query) => query.queryExecutionId,
        state: (query) => query.state,
        submitted: (query) => query.submittedAt,
        ms: (query) => query.executionTimeMs,
        sql: (query) => oneLine(query.sqlQuery),
      });
    },
  },
  {
    path: ['query', 'cancel'],
    summary: 'Stop a query',
    arguments: [id],
    examples: ['millrace query cancel q4Jm2nXv5KpLw3RtYb7Zc1'],
    run: async ({ client, arguments: given, output, signal }) => {
      const status = await (await client()).queries.cancel(given.text('id'), { signal });
      output.value(status, () => status.state);
    },
  },
  {
    path: ['query', 'schema'],
    summary: 'List tables and columns',
    arguments: [{ name: 'table', summary: 'only this one', optional: true }],
    examples: ['millrace query schema', 'millrace query schema clicks'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { tables } = await (await client()).queries.schema({ signal });
      const wanted = given.optional('table');
      const columns = tables
        .filter((table) => wanted === undefined || table.name === wanted)
        .flatMap((table) => table.columns.map((column) => ({ table: table.name, ...column })));
      output.list(columns, {
        table: (column) => column.table,
        column: (column) => column.name,
        type: (column) => column.type,
      });
    },
  },
];

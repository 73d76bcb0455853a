import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { MillraceError, type QueryRows } from '@millrace/client';
import type { Invocation } from './command.ts';
import type { Output } from './output.ts';

type Print = (output: Output, rows: QueryRows, chart: boolean) => Promise<void>;

const mostRemembered = 500;

/** Reads statements from a terminal until the person has had enough. Ctrl-C ends a query, then the prompt. */
export async function queryPrompt(invocation: Invocation, print: Print): Promise<void> {
  const { output, profiles } = invocation;
  const { queries } = await invocation.client();
  const historyFile = join(dirname(profiles.file), 'query-history');
  const history = (await readFile(historyFile, 'utf8').catch(() => ''))
    .split('\n')
    .filter((line) => line !== '')
    .slice(-mostRemembered)
    .toReversed();
  const names = new Set<string>();
  const learn = async () => {
    for (const table of (await queries.schema()).tables) {
      names.add(table.name);
      for (const column of table.columns) names.add(column.name);
    }
  };
  await learn().catch(() => {});
  const terminal = createInterface({
    input: process.stdin,
    output: process.stderr,
    history,
    historySize: mostRemembered,
    completer: (line: string): [string[], string] => {
      const word = /[\w.]*$/.exec(line)?.[0] ?? '';
      return [[...names].filter((name) => word !== '' && name.startsWith(word)), word];
    },
  });
  let running: AbortController | undefined;
  let ended = false;
  terminal.on('SIGINT', () => {
    if (running !== undefined) running.abort();
    else terminal.close();
  });
  const closed = new Promise<undefined>((resolve) =>
    terminal.on('close', () => {
      ended = true;
      resolve(undefined);
    }),
  );
  output.note('SQL that ends with ; is run. \\d lists tables, \\q ends.');
  let statement = '';
  let last: QueryRows | undefined;
  while (!ended) {
    const line = await Promise.race([
      terminal.question(statement === '' ? 'millrace> ' : '       -> ').catch(() => undefined),
      closed,
    ]);
    if (line === undefined) break;
    const word = line.trim();
    if (statement === '' && (word === '\\q' || word === 'exit' || word === 'quit')) break;
    if (statement === '' && word === '') continue;
    running = new AbortController();
    const { signal } = running;
    try {
      if (statement === '' && word === '\\d') {
        await learn();
        for (const table of (await queries.schema({ signal })).tables)
          output.line(`${table.name}  ${output.styled('dim', `${table.columns.length} columns`)}`);
      } else if (statement === '' && word === '\\chart') {
        if (last === undefined) output.note('There is no answer to draw yet.');
        else await print(output, last, true);
      } else {
        statement += `${statement === '' ? '' : '\n'}${line}`;
        if (!word.endsWith(';')) continue;
        const sql = statement;
        statement = '';
        await remember(historyFile, sql);
        last = await queries.run(sql, { signal });
        await print(output, last, false);
      }
    } catch (error) {
      if (signal.aborted) output.note('cancelled');
      else output.error(error instanceof MillraceError ? error.detail : String(error));
    } finally {
      running = undefined;
    }
  }
  terminal.close();
}

async function remember(file: string, sql: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await appendFile(file, `${sql.replace(/\s*\n\s*/g, ' ')}\n`, { mode: 0o600 });
}

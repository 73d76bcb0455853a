import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { type Millrace, MillraceError, type QueryRows } from '@millrace/client';
import { sentenceOf } from './advice.ts';
import { amountOf } from './amount.ts';
import type { Invocation } from './command.ts';
import { type Output, styled } from './output.ts';

type Print = (output: Output, rows: QueryRows, chart: boolean) => Promise<void>;

const mostRemembered = 500;

/**
 * Reads statements from a terminal until the person has had enough. Ctrl-C ends what is running; where
 * nothing runs it drops what is typed; where nothing is typed it ends the prompt.
 */
export async function queryPrompt(invocation: Invocation, print: Print): Promise<void> {
  const { output, profiles } = invocation;
  const { queries } = await invocation.client();
  const historyFile = join(dirname(profiles.file), 'query-history');
  const names = new Set<string>();
  await learn(queries, names).catch(() => {});
  const terminal = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: true,
    history: await readHistory(historyFile),
    historySize: mostRemembered,
    removeHistoryDuplicates: true,
    completer: (line: string): [string[], string] => {
      const word = /[\w.]*$/.exec(line)?.[0] ?? '';
      return [[...names].filter((name) => word !== '' && name.startsWith(word)), word];
    },
  });
  let running: AbortController | undefined;
  let statement = '';
  let last: QueryRows | undefined;
  const ask = () => {
    terminal.setPrompt(statement === '' ? 'millrace> ' : '       -> ');
    terminal.prompt();
  };
  terminal.on('SIGINT', () => {
    if (running !== undefined) return running.abort();
    if (statement === '' && terminal.line === '') return terminal.close();
    statement = '';
    // Takes the typed line away, which stays on the screen above.
    terminal.write(null, { ctrl: true, name: 'e' });
    terminal.write(null, { ctrl: true, name: 'u' });
    process.stderr.write('\n');
    ask();
  });
  invocation.signal.addEventListener('abort', () => terminal.close(), { once: true });

  const answer = async (sql: string, signal: AbortSignal) => {
    if (sql === '\\d') {
      await learn(queries, names);
      for (const table of (await queries.schema({ signal })).tables)
        output.line(table.name, '  ', styled('dim', amountOf(table.columns.length, 'column')));
    } else if (sql === '\\chart') {
      if (last === undefined) output.note('There is no answer to draw yet.');
      else await print(output, last, true);
    } else {
      await remember(historyFile, sql);
      last = await queries.run(sql, { signal });
      await print(output, last, false);
    }
  };

  output.note('SQL that ends with ; is run. \\d lists tables, \\chart draws the last answer, \\q ends.');
  ask();
  for await (const line of linesOf(terminal)) {
    const word = line.trim();
    const isFirst = statement === '';
    if (isFirst && ['\\q', 'exit', 'quit'].includes(word)) break;
    statement = isFirst ? line.trimStart() : `${statement}\n${line}`;
    if (word.endsWith(';') || (isFirst && word.startsWith('\\'))) {
      const sql = statement.trim();
      statement = '';
      running = new AbortController();
      try {
        await answer(sql, running.signal);
      } catch (error) {
        if (running.signal.aborted) output.note('cancelled');
        else output.error(error instanceof MillraceError ? sentenceOf(error) : String(error));
      } finally {
        running = undefined;
      }
    }
    ask();
  }
  terminal.close();
  invocation.signal.throwIfAborted();
}

/** Lines one after the other; those that are pasted while a query runs wait their turn. */
async function* linesOf(terminal: Interface): AsyncGenerator<string, void> {
  const waiting: string[] = [];
  let ended = false;
  let wake = () => {};
  terminal.on('line', (line) => {
    waiting.push(line);
    wake();
  });
  terminal.on('close', () => {
    ended = true;
    wake();
  });
  for (;;) {
    const line = waiting.shift();
    if (line !== undefined) yield line;
    else if (ended) return;
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
}

/** Names of tables and columns, to complete. */
async function learn(queries: Millrace['queries'], names: Set<string>): Promise<void> {
  for (const table of (await queries.schema()).tables) {
    names.add(table.name);
    for (const column of table.columns) names.add(column.name);
  }
}

/** Newest first, as a terminal wants it. */
async function readHistory(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-mostRemembered)
    .toReversed();
}

async function remember(file: string, sql: string): Promise<void> {
  // A comment to the end of its line would take the rest with it in one line.
  if (sql.includes('--') && sql.includes('\n')) return;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await appendFile(file, `${sql.replace(/\s*\n\s*/g, ' ')}\n`, { mode: 0o600 });
}

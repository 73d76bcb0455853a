import { readFileSync, writeFileSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { parsedLevels } from './limits.ts';
import { type Lines, linesSql, writeParquet } from './parquet.ts';
import { type Member, parse } from './parse.ts';
import { nameText, rescueText } from './rescue.ts';

/**
 * The last resort when the engine refuses a scratch file: finds the lines that it refuses by halving, and
 * moves everything in them to `_rescued`. No message that was accepted may keep the others out of the lake.
 */

/** Reads of a part of the file, after which what is left of a part that is refused goes as a whole. */
const probeLimit = 400;

/** Whether an error is about what the lines hold, as opposed to the disk, the memory or the engine itself. */
export function isAboutLines(error: unknown): boolean {
  return (
    error instanceof Error &&
    !/^(IO|Out of Memory|INTERNAL|FATAL|Interrupt|Permission|Catalog|Binder|Parser) Error/i.test(
      error.message,
    )
  );
}

/** Rewrites the lines that the engine refuses; the file at `lines.path` is replaced. How many there were. */
export async function repairLines(connection: DuckDBConnection, lines: Lines): Promise<number> {
  const bytes = readFileSync(lines.path);
  const starts = lineStarts(bytes);
  const refused = await refusedLines(connection, lines, bytes, starts);
  const pieces: Buffer[] = [];
  let kept = 0;
  for (const line of refused) {
    const [start = 0, end = bytes.length] = [starts[line], starts[line + 1]];
    pieces.push(
      bytes.subarray(kept, start),
      Buffer.from(`${rescuedLine(bytes.toString('utf8', start, end - 1))}\n`),
    );
    kept = end;
  }
  pieces.push(bytes.subarray(kept));
  writeFileSync(lines.path, Buffer.concat(pieces));
  return refused.length;
}

/** Where each line begins, and where the last one ends. */
function lineStarts(bytes: Buffer): number[] {
  const starts = [0];
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) starts.push(at + 1);
  return starts;
}

async function refusedLines(
  connection: DuckDBConnection,
  lines: Lines,
  bytes: Buffer,
  starts: readonly number[],
): Promise<number[]> {
  const part = `${lines.path}.part`;
  let probes = 0;
  const isRefused = async (from: number, to: number): Promise<boolean> => {
    if (++probes > probeLimit) return true;
    writeFileSync(part, bytes.subarray(starts[from], starts[to]));
    try {
      await writeParquet(connection, linesSql({ ...lines, path: part }), lines.columns, `${part}.parquet`);
      return false;
    } catch (error) {
      if (isAboutLines(error)) return true;
      throw error;
    }
  };
  const refused: number[] = [];
  const search = async (from: number, to: number): Promise<void> => {
    if (from >= to || !(await isRefused(from, to))) return;
    if (to - from === 1 || probes > probeLimit) {
      for (let line = from; line < to; line++) refused.push(line);
      return;
    }
    const middle = (from + to) >> 1;
    await search(from, middle);
    await search(middle, to);
  };
  await search(0, starts.length - 1);
  return refused;
}

const system = /^\{"_key":"(?:[^"\\]|\\.)*","_id":"(?:[^"\\]|\\.)*","_ingested_at":-?[0-9]+/;

function rescuedLine(line: string): string {
  const head = system.exec(line)?.[0] ?? '{"_key":null';
  const body = `{${line.slice(head.length + 1)}`;
  return `${head},"_rescued":${JSON.stringify(wholeOf(body))}}`;
}

/** All that a line holds, with what was rescued from the message before in its place. */
function wholeOf(body: string): string {
  const members = membersOf(body);
  if (members === undefined) return JSON.stringify(body);
  const texts = new Map<string, string>();
  for (const member of members) {
    if (member.name !== '_rescued') texts.set(nameText(member.name), rescueText(body, member.value));
  }
  const before = members.find(({ name }) => name === '_rescued');
  const rescued: unknown =
    before === undefined ? '{}' : JSON.parse(body.slice(before.value.start, before.value.end));
  const text = typeof rescued === 'string' ? rescued : '{}';
  for (const member of membersOf(text) ?? [])
    texts.set(nameText(member.name), rescueText(text, member.value));
  return `{${[...texts].map(([name, value]) => `${name}:${value}`).join(',')}}`;
}

function membersOf(text: string): readonly Member[] | undefined {
  const parsed = parse(text, parsedLevels);
  return parsed?.kind === 'object' ? parsed.members : undefined;
}

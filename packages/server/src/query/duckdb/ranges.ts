import type { IngestedRange } from '../engine.ts';

const column = '_ingested_at';
/** A bit more than is asked for, because what `now()` means moves on between planning and running. */
const slackMilliseconds = 60_000;

const subject = `(?:${column}|CAST\\(${column} AS TIMESTAMP WITH TIME ZONE\\))`;
const time =
  "'\\d{4}-\\d\\d-\\d\\d(?: \\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?)?(?:\\+00)?'::TIMESTAMP(?: WITH TIME ZONE)?";
const comparison = new RegExp(`^\\(?${subject} ?(>=|<=|=|>|<) ?(${time})\\)?$`);
const between = new RegExp(`\\((${subject}) BETWEEN (${time}) AND (${time})\\)`, 'g');

/**
 * Which times of acceptance each table is read for, from a plan of EXPLAIN in JSON. Only filters that DuckDB
 * has pushed down to the scan of a table are looked at, so every row outside of them is left out in any case.
 * A table that is scanned several times is needed as far as all of them go; one that is scanned without
 * such a filter, or in a way that is not understood, is needed whole and stands not in the answer.
 */
export function ingestedRanges(plan: string): Map<string, IngestedRange> {
  const ranges = new Map<string, IngestedRange>();
  for (const { table, filters } of scansOf(plan)) {
    const range = filters.map(rangeOf).reduce(intersection, {});
    const known = ranges.get(table);
    ranges.set(table, known === undefined ? range : union(known, range));
  }
  for (const [table, { from, to }] of ranges) {
    if (from === undefined && to === undefined) ranges.delete(table);
  }
  return ranges;
}

interface Scan {
  readonly table: string;
  readonly filters: readonly string[];
}

function scansOf(plan: string): Scan[] {
  const scans: Scan[] = [];
  const left: unknown[] = [plan === '' ? [] : JSON.parse(plan)];
  while (left.length > 0) {
    const next = left.pop();
    if (Array.isArray(next)) left.push(...next);
    else if (typeof next === 'object' && next !== null) {
      const info = 'extra_info' in next ? next.extra_info : undefined;
      if (typeof info === 'object' && info !== null && 'Table' in info) {
        const filters = 'Filters' in info ? [info.Filters].flat().map(String) : [];
        scans.push({ table: tableName(String(info.Table)), filters });
      }
      if ('children' in next) left.push(next.children);
    }
  }
  return scans;
}

/** `memory.main.clicks`, or `memory.main."a table"`. */
function tableName(qualified: string): string {
  const name = qualified.replace(/^memory\.main\./, '');
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

/** What a filter leaves of a table. What is not understood leaves everything. */
function rangeOf(filter: string): IngestedRange {
  if (filter.includes(' OR ') || filter.startsWith('optional:')) return {};
  const comparisons = conjuncts(filter.replace(between, '$1 >= $2 AND $1 <= $3'));
  return comparisons.map(rangeOfComparison).reduce(intersection, {});
}

/** The parts of which all must hold. What stands in parentheses may be negated, so it is not taken apart. */
function conjuncts(filter: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of filter.matchAll(/'[^']*'|[()]| AND /g)) {
    if (token === '(') depth += 1;
    else if (token === ')') depth -= 1;
    else if (token === ' AND ' && depth === 0) {
      parts.push(filter.slice(start, index));
      start = index + token.length;
    }
  }
  return [...parts, filter.slice(start)];
}

function rangeOfComparison(text: string): IngestedRange {
  const [, operator, literal = ''] = comparison.exec(text) ?? [];
  if (operator === undefined) return {};
  // To the millisecond, which is all that is needed with some slack.
  const [, date, clock = '00:00:00', fraction = ''] =
    /^'(\S{10})(?: ([\d:]{8})(\.\d{1,3})?)?/.exec(literal) ?? [];
  const at = Date.parse(`${date}T${clock}${fraction}Z`);
  if (Number.isNaN(at)) return {};
  const from = at - slackMilliseconds;
  const to = at + slackMilliseconds;
  if (operator === '=') return { from, to };
  return operator.startsWith('>') ? { from } : { to };
}

function intersection(one: IngestedRange, other: IngestedRange): IngestedRange {
  return bounded(
    larger(one.from, other.from),
    one.to === undefined || other.to === undefined ? (one.to ?? other.to) : Math.min(one.to, other.to),
  );
}

function union(one: IngestedRange, other: IngestedRange): IngestedRange {
  return bounded(
    one.from === undefined || other.from === undefined ? undefined : Math.min(one.from, other.from),
    one.to === undefined || other.to === undefined ? undefined : Math.max(one.to, other.to),
  );
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function bounded(from: number | undefined, to: number | undefined): IngestedRange {
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

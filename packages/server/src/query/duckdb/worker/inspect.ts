import type { InspectAnswer } from '../protocol.ts';

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

/** What a text was found to be. */
export type Inspection = WithoutId<InspectAnswer>;

/** Everything that may stand in FROM with parentheses. All of it makes rows from its arguments alone. */
const tableFunctions = new Set([
  'range',
  'generate_series',
  'unnest',
  'json_each',
  'json_tree',
  'repeat',
  'repeat_row',
  'generate_subscripts',
  'regexp_split_to_table',
  'pg_timezone_names',
  'icu_calendar_names',
  'duckdb_keywords',
]);

/** Functions that tell of the engine or its host, run other statements, or hold a thread. */
const refusedFunctions = new Set([
  'current_setting',
  'getenv',
  'getvariable',
  'set_config',
  'currval',
  'nextval',
  'json_serialize_plan',
  'json_serialize_sql',
  'json_deserialize_sql',
  'json_execute_serialized_sql',
  'write_log',
  'parse_duckdb_log_message',
  'sleep_ms',
  'pg_sleep',
  'query',
  'query_table',
  'combine',
  'finalize',
  'pg_get_viewdef',
  'inet_client_addr',
  'inet_client_port',
  'inet_server_addr',
  'inet_server_port',
  'pg_conf_load_time',
  'pg_postmaster_start_time',
]);

const readOnly =
  'Only one statement that reads can be submitted: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES, or EXPLAIN of one of them.';

/** The engine would write down the values of the column first, in a statement of its own. */
const pivotAdvice =
  " A PIVOT is one of them when it names its values with IN, as in PIVOT orders ON status IN ('open', 'paid') USING count(*).";

type Node = Readonly<Record<string, unknown>>;

/** Says what a statement uses, from the tree that `json_serialize_sql` gives of it. */
export function inspectTree(tree: unknown, { isExplained = false, hasPivot = false } = {}): Inspection {
  const notReading: Inspection = {
    kind: 'refused',
    reason: hasPivot ? `${readOnly}${pivotAdvice}` : readOnly,
  };
  if (!isNode(tree)) return notReading;
  // What json_serialize_sql says of any statement that does not read.
  if (tree.error === true) return tree.error_type === 'not implemented' ? notReading : refusalOf(tree);
  const statements = Array.isArray(tree.statements) ? tree.statements : [];
  if (statements.length === 0)
    return isExplained ? notReading : { kind: 'refused', reason: 'There is no statement in it.' };
  if (statements.length > 1) {
    return {
      kind: 'refused',
      reason: `It has ${statements.length} statements, and exactly one can be submitted.`,
    };
  }
  const found = new Findings();
  // By hand and not by recursion: a statement may be nested deeper than the stack is.
  const left: unknown[] = [statements[0]];
  while (left.length > 0) {
    const next = left.pop();
    if (Array.isArray(next)) left.push(...next.slice().reverse());
    else if (isNode(next)) {
      const refusal = found.look(next);
      if (refusal !== undefined) return refusal;
      for (const value of childrenOf(next)) left.push(value);
    }
  }
  return found.statement();
}

class Findings {
  readonly #tables: { catalog: string; schema: string; name: string; position: number }[] = [];
  readonly #commonNames = new Set<string>();
  #listsTables = false;
  #namesIngestedAt = false;

  look(node: Node): Inspection | undefined {
    const position = positionOf(node);
    if (node.type === 'BASE_TABLE') {
      const schema = text(node.schema_name);
      this.#tables.push({ catalog: text(node.catalog_name), schema, name: text(node.table_name), position });
      if (schema.toLowerCase() === 'information_schema') this.#listsTables = true;
    } else if (node.type === 'TABLE_FUNCTION') {
      const name = isNode(node.function) ? text(node.function.function_name).toLowerCase() : '';
      if (!tableFunctions.has(name)) return refused(`The function ${name} cannot be read from.`, position);
    } else if (node.type === 'SHOW_REF') {
      return this.#show(node);
    } else if (node.class === 'FUNCTION' || node.class === 'WINDOW') {
      const name = text(node.function_name).toLowerCase();
      if (refusedFunctions.has(name)) return refused(`The function ${name} cannot be used.`, position);
    } else if (node.class === 'PARAMETER') {
      return refused('Parameters such as ? and $1 cannot be used: write the value.', undefined);
    } else if (node.class === 'COLUMN_REF') {
      const names = Array.isArray(node.column_names) ? node.column_names : [];
      if (names.some((name) => text(name).toLowerCase() === '_ingested_at')) this.#namesIngestedAt = true;
    } else if (Array.isArray(node.map)) {
      for (const entry of node.map) if (isNode(entry)) this.#commonNames.add(text(entry.key));
    }
    return undefined;
  }

  statement(): Inspection {
    return {
      kind: 'statement',
      tables: this.#tables,
      commonNames: [...this.#commonNames],
      listsTables: this.#listsTables,
      namesIngestedAt: this.#namesIngestedAt,
    };
  }

  #show(node: Node): Inspection | undefined {
    // DESCRIBE and SUMMARIZE hold a query, whose tables are found like any others.
    if (isNode(node.query)) return undefined;
    const what = text(node.table_name).replaceAll('"', '').toLowerCase();
    if (what !== 'tables' && what !== '__show_tables_expanded') {
      // SHOW TABLES FROM a schema has no name.
      const shown = what === '' ? 'This form of SHOW' : `SHOW ${what.toUpperCase()}`;
      return refused(`${shown} cannot be used: SHOW TABLES can.`, undefined);
    }
    this.#listsTables = true;
    return undefined;
  }
}

/** A function in FROM was looked at with its table; what it is given was not. */
function childrenOf(node: Node): unknown[] {
  if (node.type !== 'TABLE_FUNCTION' || !isNode(node.function)) return Object.values(node);
  const { function: called, ...rest } = node;
  return [...Object.values(rest), ...Object.values(isNode(called) ? called : {})];
}

function refusalOf(tree: Node): Inspection {
  const message = text(tree.error_message);
  if (/memory exhausted|depth limit/i.test(message)) {
    return { kind: 'refused', reason: 'The statement is too complex: it is nested too deeply.' };
  }
  const position = Number(tree.position);
  return refused(message, Number.isSafeInteger(position) ? position : undefined);
}

function refused(reason: string, position: number | undefined): Inspection {
  return position === undefined ? { kind: 'refused', reason } : { kind: 'refused', reason, position };
}

/** The parser has no place for what it made up itself: the largest number there is. */
function positionOf(node: Node): number {
  const position = Number(node.query_location);
  return Number.isSafeInteger(position) ? position : 0;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

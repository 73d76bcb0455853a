import { DuckDBInstance } from '@duckdb/node-api';
import { explained } from './explained.ts';
import { type Inspection, inspectTree } from './inspect.ts';
import { lockedSettings } from './locks.ts';
import { parseTree } from './tree.ts';

/**
 * Reads statements with DuckDB's own parser, which gives the tree of a SELECT as JSON and refuses to do so
 * for anything else. Whether something is read-only is therefore decided by what it is, not by its words.
 */
export async function startParser(): Promise<(sql: string) => Promise<Inspection>> {
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    memory_limit: '256MB',
    max_temp_directory_size: '0B',
  });
  const connection = await instance.connect();
  for (const setting of [...lockedSettings, 'set lock_configuration = true']) await connection.run(setting);
  connection.closeSync();

  return async (sql) => {
    const statement = explained(sql);
    const asking = await instance.connect();
    try {
      const reader = await asking.runAndReadAll('select json_serialize_sql($1::varchar)::varchar', [
        statement,
      ]);
      return inspectTree(parseTree(String(reader.getRows()[0]?.[0])), {
        isExplained: statement !== sql,
        // Only for advice on what is refused anyway, so the word alone will do.
        hasPivot: /\bpivot(?:_wider)?\b/i.test(statement),
      });
    } catch (error) {
      return { kind: 'refused', reason: error instanceof Error ? error.message : String(error) };
    } finally {
      asking.closeSync();
    }
  };
}

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { PlanRequest } from '../protocol.ts';
import { lockedSettings } from './locks.ts';
import { quotedName } from './type-names.ts';

/**
 * Plans statements over empty tables of the same columns: the plan shows which filters reach which table
 * before a file is touched. What DuckDB would conclude from the tables being empty is switched off.
 */
export class Planner {
  #connection: DuckDBConnection | undefined;

  /** The plan in JSON. Empty when the statement cannot be planned, which running it will tell better. */
  async plan({ sql, tables }: PlanRequest): Promise<string> {
    this.#connection ??= await open();
    const connection = this.#connection;
    try {
      for (const { name, columns } of tables) {
        const listed = columns.map((column) => `${quotedName(column.name)} ${column.type}`).join(', ');
        await connection.run(`create or replace table ${quotedName(name)} (${listed})`);
      }
      const reader = await connection.runAndReadAll(`explain (format json) ${sql}`);
      return String(reader.getRows()[0]?.[1] ?? '');
    } catch {
      return '';
    } finally {
      for (const { name } of tables) await connection.run(`drop table if exists ${quotedName(name)}`);
    }
  }

  interrupt(): void {
    this.#connection?.interrupt();
  }
}

async function open(): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '128MB' });
  const connection = await instance.connect();
  // Late materialization reads a table a second time, by row and so without a filter.
  const optimizers =
    'statistics_propagation,compressed_materialization,empty_result_pullup,late_materialization';
  await connection.run(`set disabled_optimizers = '${optimizers}'`);
  for (const setting of [...lockedSettings, 'set lock_configuration = true']) await connection.run(setting);
  return connection;
}

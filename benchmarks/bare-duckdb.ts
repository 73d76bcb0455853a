import { text } from 'node:stream/consumers';
import { DuckDBInstance } from '@duckdb/node-api';

/** What DuckDB can do at best: reads its work from stdin, runs each question some times, answers the times. */
const { setup, questions, rounds }: { setup: string[]; questions: string[]; rounds: number } = JSON.parse(
  await text(process.stdin),
);
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
for (const statement of setup) await connection.run(statement);
const answers: { rows: (string | null)[][]; milliseconds: number[] }[] = [];
for (const question of questions) {
  const milliseconds: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    await (await connection.runAndReadAll(question)).getRowsJson();
    milliseconds.push(performance.now() - started);
  }
  // As text by the engine itself, as the service answers it.
  const result = await connection.runAndReadAll(`SELECT COLUMNS(*)::VARCHAR FROM (${question})`);
  const rows = result.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
  answers.push({ rows, milliseconds });
}
process.stdout.write(JSON.stringify(answers));

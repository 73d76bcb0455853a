import { parseArgs } from 'node:util';
import { findLoadTool } from './load.ts';
import { printRows, type Row } from './row.ts';
import { authenticatedReads } from './rows/authenticated-read.ts';
import { manyConnections } from './rows/connections.ts';
import { consumerThroughput } from './rows/consumers.ts';
import { lakeDrain } from './rows/lake.ts';
import { publishAndState, publishBatches } from './rows/publish.ts';
import { analyticalQueries } from './rows/queries.ts';
import { coldStart, idleMemory } from './rows/start.ts';
import { taskRows } from './rows/tasks.ts';

const usage = `Measures the service next to what the machine can do at best, in one run.

  npm run bench [-- --seconds N] [--rounds N] [--only start,memory,reads,publish,batches,consumers,connections,lake,queries,tasks]
                   [--rows N]   rows of the queries, 3 million unless given

Machines differ and are noisy: read the ratios, not the figures. A missed bar fails nothing.
`;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string' },
    rows: { type: 'string', default: '3000000' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  process.stdout.write(usage);
} else {
  const tool = findLoadTool();
  process.stdout.write(`node ${process.version}, ${process.arch}, load by ${tool.name}\n\n`);
  const measures: Record<string, () => Promise<Row[]>> = {
    start: async () => [await coldStart()],
    memory: async () => [await idleMemory()],
    reads: () => authenticatedReads(tool, Number(values.seconds), Number(values.rounds)),
    publish: () => publishAndState(tool, Number(values.seconds), Number(values.rounds)),
    consumers: async () => [await consumerThroughput()],
    connections: async () => [await manyConnections(Number(values.seconds))],
    tasks: () => taskRows(tool, Number(values.seconds)),
    lake: () => lakeDrain(),
    queries: () => analyticalQueries(Number(values.rows), Number(values.rounds)),
    batches: async () => [await publishBatches(Number(values.seconds), Number(values.rounds))],
  };
  const wanted = values.only === undefined ? Object.keys(measures) : values.only.split(',');
  const unknown = wanted.find((name) => !(name in measures));
  if (unknown !== undefined) {
    process.stderr.write(`there is no measurement named ${unknown}\n\n${usage}`);
    process.exit(2);
  }
  const rows: Row[] = [];
  for (const name of wanted) {
    process.stderr.write(`measuring ${name} ...\n`);
    rows.push(...((await measures[name]?.()) ?? []));
  }
  printRows(rows);
}

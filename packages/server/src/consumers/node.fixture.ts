/** A node in a process of its own, to be stopped and killed. It prints a line for each record it handles. */
import { openPostgresDatabase } from '../database/postgres/postgres-database.ts';
import { systemClock } from '../platform/clock.ts';
import { silentLog } from '../platform/log.ts';
import { systemRandom } from '../platform/random.ts';
import { consumer } from './consumers.fixture.ts';
import { ConsumerRunner } from './runner.ts';
import { sameEverywhere } from './same-log.fixture.ts';

const [url = '', nodeId = ''] = process.argv.slice(2);
const database = await openPostgresDatabase({ url, clock: systemClock });
const runner = new ConsumerRunner({
  database,
  events: await sameEverywhere(),
  clock: systemClock,
  random: systemRandom,
  log: silentLog,
  nodeId,
});
runner.register(
  consumer(async (batch) => {
    for (const { address } of batch) process.stdout.write(`${address.partition}\n`);
    return [];
  }),
);
process.on('SIGTERM', async () => {
  await runner.close();
  await database.close();
  process.exit(0);
});

/**
 * A process that writes to an SQLite database until it is killed and prints one line for each thing that
 * happened to it. The tests of crashes and of failing disks start it.
 */
import { systemClock } from '../../platform/clock.ts';
import { openSqliteDatabase } from './sqlite-database.ts';

const [path = '', first = '0'] = process.argv.slice(2);

const database = await openSqliteDatabase({
  path,
  clock: systemClock,
  onFatal: (error) => {
    console.log(`fatal ${error.name}`);
    // Whatever is tried after this must not be acknowledged.
    write(-1).then(
      () => console.log('acknowledged after the fault'),
      () => process.exit(70),
    );
  },
});
console.log('open');

/** One transaction of two rows, so that half of it would show. */
function write(number: number): Promise<void> {
  return database.transaction(async (transaction) => {
    for (const half of ['left', 'right']) {
      await transaction
        .insertInto('secrets')
        .values({ name: `${half} ${number}`, value: 'x'.repeat(500), created_at: number })
        .execute();
    }
  });
}

async function writeFrom(start: number): Promise<void> {
  for (let number = start; ; number += 4) {
    await write(number);
    console.log(`acknowledged ${number}`);
  }
}

try {
  await Promise.all([0, 1, 2, 3].map((lane) => writeFrom(Number(first) + lane)));
} catch (error) {
  console.log(`failed ${error instanceof Error ? error.name : error}`);
}

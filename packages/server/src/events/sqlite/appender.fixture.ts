/**
 * A process that appends to a log until it is killed and prints one line for each thing that happens. The
 * tests of crashes, failing disks and full ones start it with a directory, the number of the round, and
 * how many append side by side. Each call appends three entries of one key, so that half of it would show.
 */
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../platform/clock.ts';
import { entry } from '../entries.suite.ts';
import { EventLogUnavailableError } from '../events.ts';
import { openSqliteEventLog } from './sqlite-event-log.ts';

const [directory = '', round = '0', lanes = '8'] = process.argv.slice(2);
const topic = { organizationId: 'organization', topicName: 'crashes' };

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Writes at once, so that the trace of system calls shows when. The pipe may be full for a moment. */
function print(line: string): void {
  for (;;) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

const log = await openSqliteEventLog({
  directory,
  clock: systemClock,
  onFatal: (error) => {
    print(`fatal ${error.message}`);
    // Whatever is tried after this must not be acknowledged.
    append(0, -1).then(
      () => print('acknowledged after the fault'),
      () => process.exit(70),
    );
  },
});
print('open');

function append(lane: number, call: number) {
  return log.append(
    ['a', 'b', 'c'].map((part) =>
      entry(topic, {
        key: `${round}/${lane}`,
        id: `${round}/${lane}/${call}${part}`,
        deduplicate: call % 2 === 0,
        body: Buffer.alloc(50 + ((call * 37) % 900), 'x'),
      }),
    ),
  );
}

async function appendOn(lane: number): Promise<void> {
  for (let call = 0; ; call += 1) {
    print(`asked ${round}/${lane}/${call}`);
    try {
      await append(lane, call);
      print(`acknowledged ${round}/${lane}/${call}`);
    } catch (error) {
      if (!(error instanceof EventLogUnavailableError)) throw error;
      print(`refused ${round}/${lane}/${call}`);
      await delay(1);
    }
  }
}

await Promise.all(Array.from({ length: Number(lanes) }, (_, lane) => appendOn(lane)));

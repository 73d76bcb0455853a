import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { newOrganization, newPerson } from '../../acceptance/harness/people.ts';
import { startService } from '../../acceptance/harness/service.ts';
import { median, type Row } from '../row.ts';

const rounds = 5;

/** From the start of the process to the line that says it is ready, on a data directory that is in use. */
export async function coldStart(): Promise<Row> {
  const first = await startService();
  await newOrganization(first, await newPerson(first));
  await first.stop();
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    const service = await startService({ dataDirectory: first.dataDirectory });
    times.push(performance.now() - started);
    await service.stop();
  }
  await first.remove();
  const time = median(times);
  return {
    what: 'cold start to ready',
    figure: `${Math.round(time)} ms`,
    bar: 'at most 2000 ms',
    reached: time <= 2000,
  };
}

/** Resident memory of a service that has been used a little and then left alone. */
export async function idleMemory(): Promise<Row> {
  const service = await startService();
  await newOrganization(service, await newPerson(service));
  await pause(5000);
  const status = await readFile(`/proc/${service.process.pid}/status`, 'utf8');
  await service.remove();
  const mebibytes = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  return {
    what: 'idle memory',
    figure: `${Math.round(mebibytes)} MiB`,
    bar: 'at most 150 MiB',
    reached: mebibytes <= 150,
  };
}

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, CommandError, type Invocation } from '../command.ts';
import { tour } from '../demo/tour.ts';
import { Profiles } from '../profile.ts';
import { safeJson } from '../safe-text.ts';
import { runService, serviceEnvironment } from '../service.ts';

const profile = 'demo';

async function demonstrate(invocation: Invocation): Promise<void> {
  const { options, output, environment, signal } = invocation;
  const keep = options.flag('keep');
  const given = options.text('data-dir');
  const events = options.number('events', { least: 1000, most: 10_000_000 }) ?? 100_000;
  const dataDirectory =
    given === undefined ? await mkdtemp(join(tmpdir(), 'millrace-demo-')) : resolve(given);
  if ((await readdir(dataDirectory).catch(() => [])).length > 0)
    throw new CommandError(`${dataDirectory} is not empty, and the tour begins with nothing.`);
  const started = performance.now();
  output.note(`Starting a service on ${dataDirectory}`);
  // Its own settings only: a database of somebody's is not for the tour.
  const others = Object.entries(environment).filter(([name]) => !name.startsWith('MILLRACE_'));
  const service = await runService(
    {
      ...Object.fromEntries(others),
      MILLRACE_PORT: '0',
      ...serviceEnvironment(invocation),
      MILLRACE_DATA_DIR: dataDirectory,
      MILLRACE_LOG_LEVEL: 'warn',
    },
    signal,
  );
  try {
    const { organization, apiKey, figures } = await tour({
      url: service.url,
      dataDirectory,
      events,
      output,
      signal,
    });
    if (output.json) output.line(safeJson(figures));
    output.note(`\nThat took ${((performance.now() - started) / 1000).toFixed(0)} s.`);
    if (!keep) {
      output.note('Run it with --keep to look around yourself, or start your own with `millrace serve`.');
      return;
    }
    await new Profiles(environment, profile).update({ endpoint: service.url, organization, apiKey });
    output.note(
      [
        `\nThe service goes on at ${service.url}; ctrl-C ends it. Its data is in ${dataDirectory}.`,
        `Its API key is in the profile ${profile}, so in another terminal:`,
        `  export MILLRACE_PROFILE=${profile}`,
        '  millrace query                      ask more questions',
        '  millrace topic tail visits          see messages arrive',
        '  millrace task logs count-visits     see what the task prints',
        `  ${service.url}/docs   every operation`,
      ].join('\n'),
    );
    await Promise.race([
      service.ended,
      new Promise<void>((end) => signal.addEventListener('abort', () => end(), { once: true })),
    ]);
  } finally {
    await service.stop();
    if (given === undefined && !keep) await rm(dataDirectory, { recursive: true, force: true });
  }
}

export const serveCommands: readonly Command[] = [
  {
    path: ['serve'],
    summary: 'Run the service',
    description: 'All other settings are environment variables; see docs/operating.md.',
    options: {
      port: { value: 'number', summary: 'where to listen; 8080 unless given, 0 for any' },
      'data-dir': { value: 'folder', summary: 'where the data is; ./data unless given' },
      host: { value: 'address', summary: 'which address to listen on; 127.0.0.1 unless given' },
    },
    examples: ['millrace serve', 'millrace serve --port 9000 --data-dir /var/lib/millrace'],
    run: async (invocation) => {
      Object.assign(process.env, serviceEnvironment(invocation));
      // From here on the service decides how the process ends.
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal);
      await import('@millrace/server/main');
      await new Promise(() => {});
    },
  },
  {
    path: ['demo'],
    summary: 'See everything once, on a service of its own: the tour',
    options: {
      port: { value: 'number', summary: 'where to listen; any free port unless given' },
      'data-dir': { value: 'folder', summary: 'an empty folder for the data; a temporary one unless given' },
      events: { value: 'number', summary: 'how many events; 100000 unless given' },
      keep: { summary: 'leave the service running at the end' },
    },
    examples: ['millrace demo', 'millrace demo --keep --events 10000 --port 8080 --data-dir ./demo-data'],
    run: async (invocation) => {
      try {
        await demonstrate(invocation);
      } catch (error) {
        if (invocation.signal.aborted || error instanceof CommandError) throw error;
        throw new CommandError(`The tour ended early: ${error instanceof Error ? error.message : error}`);
      }
    },
  },
];

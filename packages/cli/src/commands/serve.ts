import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, CommandError, type Invocation } from '../command.ts';
import { tour } from '../demo/tour.ts';
import { runService, serviceEnvironment } from '../service.ts';

const place = {
  port: { value: 'number', summary: 'where to listen; 8080 unless given, 0 for any' },
  'data-dir': { value: 'folder', summary: 'where the data is; ./data unless given' },
} as const;

async function demonstrate(invocation: Invocation): Promise<void> {
  const { options, output, signal } = invocation;
  const keep = options.flag('keep');
  const given = options.text('data-dir');
  const events = options.number('events', { least: 1000, most: 10_000_000 }) ?? 100_000;
  const dataDirectory =
    given === undefined ? await mkdtemp(join(tmpdir(), 'millrace-demo-')) : resolve(given);
  const started = performance.now();
  output.note(`Starting a service on ${dataDirectory}`);
  const service = await runService(invocation, {
    MILLRACE_DATA_DIR: dataDirectory,
    MILLRACE_PORT: options.text('port') ?? '0',
    MILLRACE_LOG_LEVEL: 'warn',
  });
  try {
    const { organization, apiKey } = await tour({ url: service.url, dataDirectory, events, output, signal });
    output.note(`\nThat took ${((performance.now() - started) / 1000).toFixed(0)} s.`);
    if (!keep) {
      output.note('Run it with --keep to look around yourself, or start your own with `millrace serve`.');
      return;
    }
    output.note(
      [
        `\nThe service goes on at ${service.url}; ctrl-C ends it. In another terminal:`,
        `  export MILLRACE_ENDPOINT=${service.url} MILLRACE_ORGANIZATION=${organization} MILLRACE_API_KEY=${apiKey}`,
        '  millrace query                      ask more questions',
        '  millrace topic tail visits          see messages arrive',
        '  millrace task logs count-visits     see what the task prints',
        `  ${service.url}/docs   every operation`,
      ].join('\n'),
    );
    await new Promise<void>((end) => signal.addEventListener('abort', () => end()));
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
      ...place,
      host: { value: 'address', summary: 'which address to listen on; 127.0.0.1 unless given' },
    },
    examples: ['millrace serve', 'millrace serve --port 9000 --data-dir /var/lib/millrace'],
    run: async (invocation) => {
      const host = invocation.options.text('host');
      Object.assign(
        process.env,
        serviceEnvironment(invocation),
        host === undefined ? {} : { MILLRACE_HOST: host },
      );
      // From here on the service decides how the process ends.
      process.removeAllListeners('SIGINT');
      process.removeAllListeners('SIGTERM');
      await import('@millrace/server/main');
      await new Promise(() => {});
    },
  },
  {
    path: ['demo'],
    summary: 'See everything once, on a service of its own: the tour',
    options: {
      ...place,
      events: { value: 'number', summary: 'how many events; 100000 unless given' },
      keep: { summary: 'leave the service running at the end' },
    },
    examples: ['millrace demo', 'millrace demo --keep --port 8080 --data-dir ./demo-data'],
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

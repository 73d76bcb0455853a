import { readFile } from 'node:fs/promises';
import { type Millrace, MillraceError } from '@millrace/client';
import { type Command, CommandError, UsageError } from '../command.ts';
import { type Output, styled } from '../output.ts';
import { agreeTo, readInput } from '../prompt.ts';
import { safeJson } from '../safe-text.ts';
import { oneLine } from '../table.ts';
import { traceOf } from '../trace.ts';

const task = { name: 'task', summary: 'the name of the task' } as const;
const yes = { yes: { short: 'y', summary: 'do not ask' } } as const;

type Status = Awaited<ReturnType<Millrace['tasks']['status']>>;
type LogLine = Awaited<ReturnType<Millrace['tasks']['invoke']>>['logs'][number];

function showStatus(output: Output, status: Status): void {
  output.value(status, () =>
    [
      `${status.taskId}  ${status.status}${status.version === undefined ? '' : `  version ${status.version}`}`,
      ...(status.lastUpdateStatus === undefined
        ? []
        : [
            `  last update ${status.lastUpdateStatus}${status.lastUpdateStatusReason === undefined ? '' : `: ${status.lastUpdateStatusReason}`}`,
          ]),
      ...(status.endpointUrl === undefined ? [] : [`  endpoint ${status.endpointUrl}`]),
      ...(status.inputQueueNames === undefined
        ? []
        : [`  reads ${status.inputQueueNames.join(', ') || 'nothing'}`]),
      ...(status.outputQueueNames === undefined
        ? []
        : [`  publishes to ${status.outputQueueNames.join(', ') || 'nothing'}`]),
    ].join('\n'),
  );
}

function showLine(output: Output, line: LogLine): void {
  output.value(line, () => {
    const text = line.stream === 'stdout' ? line.text : styled('yellow', line.text);
    return [styled('dim', `${line.time} v${line.version}`), '  ', text];
  });
}

/** Commands that ask the service to change a task and show what it is then. */
function change(
  verb: string,
  summary: string,
  act: (client: Millrace, taskId: string, signal: AbortSignal) => Promise<Status>,
): Command {
  return {
    path: ['task', verb],
    summary,
    arguments: [task],
    examples: [`millrace task ${verb} enrich`],
    run: async ({ client, arguments: given, output, signal }) =>
      showStatus(output, await act(await client(), given.text('task'), signal)),
  };
}

export const taskCommands: readonly Command[] = [
  {
    path: ['task', 'list'],
    summary: 'List the tasks',
    examples: ['millrace task list'],
    run: async ({ client, output, signal }) => {
      const tasks = await Array.fromAsync((await client()).tasks.list({ signal }));
      output.list(tasks, {
        task: (status) => status.taskId,
        status: (status) => status.status,
        version: (status) => status.version,
        'last update': (status) => status.lastUpdateStatus,
        reads: (status) => status.inputQueueNames?.join(', '),
        'publishes to': (status) => status.outputQueueNames?.join(', '),
      });
    },
  },
  change('status', 'Show the status of a task', async (client, taskId, signal) => {
    const status = await client.tasks.status(taskId, { signal });
    // The service answers a status for every name; for a program that asks, none is an error.
    if (status.status !== 'NOTFOUND') return status;
    throw new MillraceError({ code: 'TASK_NOT_FOUND', status: 404, detail: `There is no task ${taskId}.` });
  }),
  {
    path: ['task', 'versions'],
    summary: 'List the versions of a task',
    arguments: [task],
    examples: ['millrace task versions enrich'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { versions, status } = await (await client()).tasks.versions(given.text('task'), { signal });
      output.list(versions, {
        version: (version) => version.version,
        active: (version) => (version.version === status.version ? 'yes' : ''),
        description: (version) => version.description,
      });
    },
  },
  {
    path: ['task', 'activate'],
    summary: 'Make a version the active one',
    arguments: [task, { name: 'version', summary: 'which one' }],
    examples: ['millrace task activate enrich 2'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { tasks } = await client();
      showStatus(output, await tasks.activate(given.text('task'), given.text('version'), { signal }));
    },
  },
  {
    path: ['task', 'rollback'],
    summary: 'Go back to the version before the active one',
    arguments: [task],
    examples: ['millrace task rollback enrich'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { tasks } = await client();
      const { versions, status } = await tasks.versions(given.text('task'), { signal });
      const active = Number(status.version ?? 0);
      const before = versions
        .map(({ version }) => Number(version))
        .filter((version) => version < active)
        .sort((one, other) => other - one)[0];
      if (before === undefined) throw new CommandError('There is no version before the active one.');
      showStatus(output, await tasks.activate(given.text('task'), String(before), { signal }));
    },
  },
  change('pause', 'Pause a task; its messages wait', (client, taskId, signal) =>
    client.tasks.pause(taskId, { signal }),
  ),
  change('resume', 'Resume a paused task', (client, taskId, signal) =>
    client.tasks.resume(taskId, { signal }),
  ),
  {
    path: ['task', 'delete'],
    summary: 'Delete a task with all its versions',
    arguments: [task],
    options: yes,
    examples: ['millrace task delete enrich --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo(
        { signal },
        `Delete the task ${given.text('task')} with all its versions?`,
        options.flag('yes'),
      );
      await (await client()).tasks.delete(given.text('task'), { signal });
      output.done({ deleted: given.text('task') }, 'Deleted.');
    },
  },
  {
    path: ['task', 'logs'],
    summary: 'Show what a task printed',
    arguments: [task],
    options: {
      follow: { short: 'f', summary: 'go on as it prints; ctrl-C ends it' },
      since: { value: 'minutes', summary: 'how far back; 60 unless given' },
    },
    examples: ['millrace task logs enrich', 'millrace task logs enrich -f'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const { tasks } = await client();
      const minutes = options.number('since', { least: 0, most: 1_000_000 }) ?? 60;
      const since = new Date(Date.now() - minutes * 60_000);
      const read = options.flag('follow') ? tasks.followLogs.bind(tasks) : tasks.logs.bind(tasks);
      for await (const line of read(given.text('task'), { since, signal })) showLine(output, line);
      signal.throwIfAborted();
      if (options.flag('follow')) throw new CommandError('The service has ended the log.');
    },
  },
  {
    path: ['task', 'invoke'],
    summary: 'Run a task once with an event',
    description:
      'The handler gets the event as it is; one that reads streams gets batches, {"Records":[...]}, see docs/tasks.md.',
    arguments: [task],
    options: {
      event: { short: 'e', value: 'json', summary: 'the event' },
      file: { value: 'file', summary: 'the event in a file, - for stdin' },
    },
    examples: [
      `millrace task invoke hello --event '{"name":"Ada"}'`,
      'millrace task invoke enrich --file batch.json',
    ],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const file = options.text('file');
      const text =
        options.text('event') ??
        (file === undefined
          ? '{}'
          : file === '-'
            ? await readInput({ signal })
            : await readFile(file, 'utf8'));
      let event: unknown;
      try {
        event = JSON.parse(text);
      } catch {
        throw new UsageError('The event is not JSON.');
      }
      const answer = await (await client()).tasks.invoke(given.text('task'), event, { signal });
      if (output.json) output.line(safeJson(answer));
      else {
        for (const line of answer.logs) output.note(styled('dim', line.stream), `  ${line.text}`);
        if (answer.error === undefined) output.line(safeJson(answer.result ?? null, 2));
        output.note(styled('dim', `${Math.round(answer.durationMs)} ms`));
      }
      if (answer.error !== undefined) {
        if (!output.json) for (const line of traceOf(answer.error)) output.note(styled('dim', `  ${line}`));
        throw new CommandError(`${answer.error.type}: ${answer.error.message}`);
      }
    },
  },
  {
    path: ['task', 'dead-letters'],
    summary: 'List messages that a task gave up on',
    arguments: [task],
    options: { limit: { value: 'number', summary: 'at most so many; 100 unless given' } },
    examples: ['millrace task dead-letters enrich'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const limit = options.number('limit', { least: 1 }) ?? 100;
      const letters = [];
      for await (const letter of (await client()).tasks.deadLetters(given.text('task'), { signal })) {
        letters.push(letter);
        if (letters.length >= limit) break;
      }
      output.list(letters, {
        id: (letter) => letter.id,
        stream: (letter) => letter.stream,
        key: (letter) => letter.messageKey,
        attempts: (letter) => letter.attempts,
        failed: (letter) => letter.failedAt,
        error: (letter) => oneLine(letter.error),
      });
    },
  },
  {
    path: ['task', 'redrive'],
    summary: 'Give dead letters to the task again',
    arguments: [task, { name: 'id', summary: 'which; all unless given', optional: true, many: true }],
    examples: ['millrace task redrive enrich', 'millrace task redrive enrich m4Kx2LmQ7vRt9WbYc8Zn3J'],
    run: async ({ client, arguments: given, output, signal }) => {
      const ids = given.many('id');
      const { tasks } = await client();
      const redriven = await tasks.redrive(given.text('task'), {
        signal,
        ...(ids.length === 0 ? {} : { ids }),
      });
      output.value({ redriven }, () => `${redriven} given to the task again`);
    },
  },
  {
    path: ['task', 'purge'],
    summary: 'Throw the dead letters of a task away',
    arguments: [task],
    options: yes,
    examples: ['millrace task purge enrich --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo({ signal }, `Throw away all dead letters of ${given.text('task')}?`, options.flag('yes'));
      const purged = await (await client()).tasks.purge(given.text('task'), { signal });
      output.value({ purged }, () => `${purged} thrown away`);
    },
  },
];

import { watch } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { changesOf, showChanges, taskChange } from '../deployment.ts';
import { findProject, projectFile, requireProject } from '../project.ts';
import { runService } from '../service.ts';

const settleMilliseconds = 150;

async function deploy(invocation: Invocation): Promise<void> {
  const { options, output, signal } = invocation;
  const project = await requireProject(process.cwd());
  const client = await invocation.client();
  const changes = await changesOf(client, project, signal);
  if (output.json)
    output.line(
      JSON.stringify(changes.map(({ kind, name, what, detail }) => ({ kind, name, what, detail }))),
    );
  if (changes.length === 0) return output.note('Everything is as it should be.');
  showChanges(output, changes);
  if (options.flag('dry-run')) return;
  for (const change of changes) await change.apply(output, signal);
}

async function initialize(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output } = invocation;
  const taskId = given.text('task');
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(taskId))
    throw new UsageError('A task is named with letters, digits, - and _.');
  const input = options.text('input') ?? 'clicks';
  const result = options.text('output') ?? `${taskId}-output`;
  const code = `tasks/${taskId}.ts`;
  const project = await findProject(process.cwd());
  const directory = project?.directory ?? process.cwd();
  if (await stat(join(directory, code)).catch(() => undefined))
    throw new CommandError(`${join(directory, code)} is there already.`);
  const file = join(directory, projectFile);
  const whole = project === undefined ? {} : JSON.parse(await readFile(file, 'utf8'));
  await mkdir(dirname(join(directory, code)), { recursive: true });
  await writeFile(join(directory, code), taskSource(result));
  const declared = {
    ...whole,
    topics: {
      ...whole.topics,
      [input]: whole.topics?.[input] ?? { batch: {}, streams: [{ name: input }] },
      [result]: whole.topics?.[result] ?? { batch: {} },
    },
    tasks: { ...whole.tasks, [taskId]: { code, input: [input], output: [result] } },
  };
  await writeFile(file, `${JSON.stringify(declared, null, 2)}\n`);
  output.note(`Wrote ${code} and ${projectFile}. Deploy with \`millrace deploy\`.`);
}

function taskSource(output: string): string {
  return `import { log, publish, state, streamHandler } from '@millrace/runner';

interface Message {
  readonly page?: string;
}

/** Counts pages and passes each message on with the count. */
export const handler = streamHandler<Message>(async ({ body, key, id }) => {
  const page = body.page ?? 'unknown';
  const { attributes } = await state.increment(['page', page], 'views');
  await publish('${output}', { ...body, views: attributes.views }, { key, id });
  log.info('counted', { page, views: attributes.views });
});
`;
}

/** Serves, deploys, and deploys again whenever something of the project is saved. */
async function develop(invocation: Invocation): Promise<void> {
  const { options, output, signal } = invocation;
  const project = await requireProject(process.cwd());
  const service = options.flag('no-serve') ? undefined : await runService(invocation, {});
  try {
    const client = await invocation.client();
    if (service !== undefined) await client.ping({ signal });
    const redeploy = async () => {
      try {
        const current = (await findProject(project.directory)) ?? project;
        const changes = await changesOf(client, current, signal);
        showChanges(output, changes);
        for (const change of changes) await change.apply(output, signal);
        if (changes.length > 0) output.note(output.styled('dim', 'watching for changes; ctrl-C ends it'));
      } catch (error) {
        if (signal.aborted) throw error;
        // A mistake in the code is what the next save will mend.
        output.error(error instanceof Error ? error.message : String(error));
      }
    };
    await redeploy();
    output.note(output.styled('dim', 'watching for changes; ctrl-C ends it'));
    await watchFolder(project.directory, redeploy, signal);
  } finally {
    await service?.stop();
  }
}

function watchFolder(directory: string, changed: () => Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    let working = Promise.resolve();
    const watcher = watch(directory, { recursive: true }, (_event, name) => {
      if (name === null || /(^|\/)(node_modules|\.git|data)(\/|$)/.test(name)) return;
      clearTimeout(timer);
      // Editors save in several steps.
      timer = setTimeout(() => {
        working = working.then(changed).catch(() => {});
      }, settleMilliseconds);
    });
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      watcher.close();
      void working.then(resolve);
    });
  });
}

export const projectCommands: readonly Command[] = [
  {
    path: ['deploy'],
    summary: 'Apply millrace.json: topics, schemas and tasks',
    description: 'Shows the difference first. What is not declared is left alone.',
    options: { 'dry-run': { summary: 'only show what would change' } },
    examples: ['millrace deploy --dry-run', 'millrace deploy'],
    run: deploy,
  },
  {
    path: ['dev'],
    summary: 'Serve, and deploy the project on every save',
    options: {
      'no-serve': { summary: 'use a service that runs already' },
      port: { value: 'number', summary: 'where to serve; 8080 unless given' },
      'data-dir': { value: 'folder', summary: 'where the data is; ./data unless given' },
    },
    examples: ['millrace dev', 'millrace dev --no-serve'],
    run: develop,
  },
  {
    path: ['task', 'init'],
    summary: 'Write a first task and millrace.json',
    arguments: [{ name: 'task', summary: 'its name' }],
    options: {
      input: { value: 'topic', summary: 'what it reads; clicks unless given' },
      output: { value: 'topic', summary: 'what it publishes to; <task>-output unless given' },
    },
    examples: ['millrace task init enrich --input clicks --output enriched'],
    run: initialize,
  },
  {
    path: ['task', 'deploy'],
    summary: 'Deploy one task of millrace.json, or a file',
    arguments: [{ name: 'task', summary: 'its name' }],
    options: {
      code: { value: 'path', summary: 'a file to bundle or a folder to pack, instead of millrace.json' },
      handler: { value: 'name', summary: 'where the code starts; index.handler unless given' },
      input: { value: 'stream', many: true, summary: 'a stream it reads; may be repeated' },
      output: { value: 'topic', many: true, summary: 'a topic it may publish to; may be repeated' },
      endpoint: { value: 'public|members', summary: 'serve HTTP' },
    },
    examples: ['millrace task deploy enrich', 'millrace task deploy hello --code hello.ts --endpoint public'],
    run: async (invocation) => {
      const { arguments: given, options, output, signal } = invocation;
      const taskId = given.text('task');
      const code = options.text('code');
      const project = code === undefined ? await requireProject(process.cwd()) : undefined;
      const declared = project?.tasks[taskId];
      const handler = options.text('handler');
      const endpoint = options.text('endpoint');
      if (endpoint !== undefined && endpoint !== 'public' && endpoint !== 'members')
        throw new UsageError('--endpoint is public or members.');
      if (code === undefined && declared === undefined)
        throw new CommandError(`${projectFile} has no task ${taskId}. Give --code, or declare it.`);
      const task = declared ?? {
        code: code ?? '',
        input: options.many('input'),
        output: options.many('output'),
        ...(handler === undefined ? {} : { handler }),
        ...(endpoint === undefined ? {} : { endpoint: { isPublic: endpoint === 'public' } }),
      };
      const directory = project?.directory ?? process.cwd();
      const change = await taskChange(await invocation.client(), directory, taskId, task, signal, true);
      await change?.apply(output, signal);
    },
  },
];

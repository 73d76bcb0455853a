import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Millrace, MillraceError } from '@millrace/client';
import { sentenceOf } from '../advice.ts';
import { bundle } from '../bundle.ts';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { changesOf, showChanges, taskChange } from '../deployment.ts';
import { styled } from '../output.ts';
import { findProject, type Project, type ProjectTask, projectFile, requireProject } from '../project.ts';
import { runtimes, usualRuntime } from '../runtimes.ts';
import { safeJson } from '../safe-text.ts';
import { runService, serviceEnvironment } from '../service.ts';
import { watchFiles } from '../watch.ts';
import { wordOf } from '../word.ts';

const schemaFile = fileURLToPath(new URL('../../millrace.schema.json', import.meta.url));

async function deploy(invocation: Invocation): Promise<void> {
  const { options, output, signal } = invocation;
  const project = await requireProject(process.cwd());
  const client = await invocation.client();
  const changes = await changesOf(client, project, signal);
  if (output.json)
    for (const { kind, name, what, detail } of changes) output.line(safeJson({ kind, name, what, detail }));
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
  const file = join(directory, projectFile);
  const whole = project === undefined ? {} : JSON.parse(await readFile(file, 'utf8'));
  if (whole.tasks?.[taskId] !== undefined)
    throw new CommandError(`${projectFile} has a task ${taskId} already.`);
  const $schema = whole.$schema ?? (await schemaReference(directory));
  await mkdir(dirname(join(directory, code)), { recursive: true });
  await writeFile(join(directory, code), taskSource(result), { flag: 'wx' }).catch((error: Error) => {
    if ('code' in error && error.code === 'EEXIST')
      throw new CommandError(`${join(directory, code)} is there already.`);
    throw error;
  });
  const declared = {
    $schema,
    ...whole,
    topics: {
      ...whole.topics,
      [input]: whole.topics?.[input] ?? { batch: {}, streams: [{ name: input }] },
      [result]: whole.topics?.[result] ?? { batch: {} },
    },
    tasks: { ...whole.tasks, [taskId]: { code, input: [input], output: [result] } },
  };
  await writeFile(file, `${JSON.stringify(declared, null, 2)}\n`);
  output.done(
    { file, code: join(directory, code) },
    `Wrote ${code} and ${projectFile}. Deploy with \`millrace deploy\`.`,
  );
}

/** Where editors find the schema of millrace.json: in the installed package, or else in a copy. */
async function schemaReference(directory: string): Promise<string> {
  for (let folder = directory; ; folder = dirname(folder)) {
    const installed = join(folder, 'node_modules/@millrace/cli/millrace.schema.json');
    if (await stat(installed).catch(() => undefined)) {
      const path = relative(directory, installed);
      return path.startsWith('.') ? path : `./${path}`;
    }
    if (folder === dirname(folder)) break;
  }
  await copyFile(schemaFile, join(directory, 'millrace.schema.json'));
  return './millrace.schema.json';
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
  const { options, environment, signal } = invocation;
  const project = await requireProject(process.cwd());
  const ended = new AbortController();
  const end = AbortSignal.any([signal, ended.signal]);
  const settings = { ...environment, ...serviceEnvironment(invocation) };
  const service = options.flag('no-serve') ? undefined : await runService(settings, signal);
  void service?.ended.then(() => ended.abort());
  try {
    const client = service === undefined ? await invocation.client() : await invocation.clientAt(service.url);
    if (service !== undefined) invocation.output.note(`The service is at ${service.url}.`);
    const redeploy = () => deployChanges(invocation, client, project, end);
    const since = Date.now();
    await watchFiles(await redeploy(), redeploy, end, since);
  } finally {
    await service?.stop();
  }
  if (!signal.aborted) throw new CommandError('The service ended by itself.');
}

/** Deploys what is different and answers which files the project is made of. */
async function deployChanges(
  { output }: Invocation,
  client: Millrace,
  project: Project,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const files = new Set([join(project.directory, projectFile)]);
  for (const { code } of Object.values(project.tasks)) files.add(resolve(project.directory, code));
  try {
    const current = (await findProject(project.directory)) ?? project;
    for (const file of current.files) files.add(file);
    const changes = await changesOf(client, current, signal, (sources) => {
      for (const source of sources) if (!/[\\/]node_modules[\\/]/.test(source)) files.add(source);
    });
    showChanges(output, changes);
    for (const change of changes) await change.apply(output, signal);
  } catch (error) {
    // A mistake in the code is what the next save will mend.
    if (!signal.aborted)
      output.error(
        error instanceof MillraceError
          ? sentenceOf(error)
          : error instanceof Error
            ? error.message
            : String(error),
      );
  }
  if (!signal.aborted) output.note(styled('dim', 'watching for changes; ctrl-C ends it'));
  return [...files];
}

/** What describes a task on the command line, where millrace.json does not. */
const taskOptions = ['runtime', 'handler', 'input', 'output', 'http'] as const;

/** A task as the command line describes it. */
function taskOf({ options }: Invocation, code: string): ProjectTask {
  const runtime = options.text('runtime');
  const handler = options.text('handler');
  const endpoint = options.text('http');
  if (endpoint !== undefined && endpoint !== 'public' && endpoint !== 'members')
    throw new UsageError('--http is public or members.');
  return {
    code,
    input: options.many('input'),
    output: options.many('output'),
    ...(runtime === undefined ? {} : { runtime: wordOf(runtimes, runtime) }),
    ...(handler === undefined ? {} : { handler }),
    ...(endpoint === undefined ? {} : { endpoint: { isPublic: endpoint === 'public' } }),
  };
}

/** A task of millrace.json. */
async function declaredTask(
  { options }: Invocation,
  taskId: string,
): Promise<{ readonly directory: string; readonly task: ProjectTask }> {
  const { directory, tasks } = await requireProject(process.cwd());
  const task = tasks[taskId];
  if (task === undefined)
    throw new CommandError(`${projectFile} has no task ${taskId}. Give --code, or declare it.`);
  const ignored = taskOptions.find((name) => options.text(name) ?? options.many(name)[0]);
  if (ignored !== undefined)
    throw new UsageError(`--${ignored} goes with --code: ${projectFile} describes ${taskId}.`);
  return { directory, task };
}

async function deployOne(invocation: Invocation): Promise<void> {
  const { arguments: given, options, output, signal } = invocation;
  const taskId = given.text('task');
  const code = options.text('code');
  const { directory, task } =
    code === undefined
      ? await declaredTask(invocation, taskId)
      : { directory: process.cwd(), task: taskOf(invocation, code) };
  const made = await bundle(resolve(directory, task.code), { directory, runtime: task.runtime });
  const change = await taskChange(await invocation.client(), made, taskId, task, signal, true);
  await change?.apply(output, signal);
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
    description:
      'A file of TypeScript or JavaScript is bundled with all it imports.\nA file of another runtime is packed as it is, and so is a folder.',
    arguments: [{ name: 'task', summary: 'its name' }],
    options: {
      code: { value: 'path', summary: 'a file or a folder with the code, instead of millrace.json' },
      runtime: { value: 'name', summary: `${runtimes.join(', ')}; ${usualRuntime} unless given` },
      handler: {
        value: 'name',
        summary: 'where the code starts; index.handler unless given, and app.handler for app.py',
      },
      input: { value: 'stream', many: true, summary: 'a stream it reads; may be repeated' },
      output: { value: 'topic', many: true, summary: 'a topic it may publish to; may be repeated' },
      http: { value: 'public|members', summary: 'serve HTTP, for anybody or for members only' },
    },
    examples: [
      'millrace task deploy enrich',
      'millrace task deploy hello --code hello.ts --http public',
      'millrace task deploy echo --code bootstrap --runtime PROVIDED --handler echo',
    ],
    run: deployOne,
  },
];

import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Millrace, MillraceError } from '@millrace/client';
import { amountOf } from './amount.ts';
import { type Bundle, bundle } from './bundle.ts';
import { describeVersion } from './deployment-digest.ts';
import { type Output, styled } from './output.ts';
import { bytesText, progressBar } from './progress.ts';
import type { Project, ProjectTask } from './project.ts';
import { usualRuntime } from './runtimes.ts';
import { safeJson } from './safe-text.ts';

/** One thing that deploying a project would change. */
export interface Change {
  readonly kind: 'topic' | 'schema' | 'task';
  readonly name: string;
  readonly what: 'new' | 'changed';
  readonly detail: string;
  apply(output: Output, signal: AbortSignal): Promise<void>;
}

/** What differs between a project and the organization. Nothing is ever deleted by deploying. */
export async function changesOf(
  client: Millrace,
  project: Project,
  signal: AbortSignal,
  onSources: (sources: readonly string[]) => void = () => {},
): Promise<Change[]> {
  const changes: Change[] = [];
  const { topics } = await client.topics.definitions({ signal });
  for (const [name, topic] of Object.entries(project.topics)) {
    const before = topics[name];
    if (isDeepStrictEqual(before, topic)) continue;
    changes.push({
      kind: 'topic',
      name,
      what: before === undefined ? 'new' : 'changed',
      detail: JSON.stringify(topic),
      apply: async () => {
        await client.topics.set(name, topic, { signal });
      },
    });
  }
  for (const [name, schema] of Object.entries(project.schemas)) {
    const before = await client.topics.schema(name, { signal }).catch((error: unknown) => {
      if (error instanceof MillraceError && error.status === 404) return undefined;
      throw error;
    });
    if (before !== undefined && isDeepStrictEqual(JSON.parse(before.schema), schema)) continue;
    changes.push({
      kind: 'schema',
      name,
      what: before === undefined ? 'new' : 'changed',
      detail: amountOf(
        Object.keys('properties' in schema && schema.properties ? schema.properties : {}).length,
        'column',
      ),
      apply: () => client.topics.setSchema(name, schema, { signal }),
    });
  }
  for (const [taskId, task] of Object.entries(project.tasks)) {
    const made = await bundle(resolve(project.directory, task.code), {
      directory: project.directory,
      runtime: task.runtime,
    });
    onSources(made.sources);
    const change = await taskChange(client, made, taskId, task, signal);
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

/** What deploying one task would change; undefined when its active version is the same. */
export async function taskChange(
  client: Millrace,
  made: Bundle,
  taskId: string,
  task: ProjectTask,
  signal: AbortSignal,
  always = false,
): Promise<Change | undefined> {
  const description = describeVersion(task, made);
  const versions = await client.tasks.versions(taskId, { signal }).catch((error: unknown) => {
    if (error instanceof MillraceError && error.status === 404) return undefined;
    throw error;
  });
  const active = versions?.versions.find(({ version }) => version === versions.status.version);
  if (active?.description === description && !always) return undefined;
  return {
    kind: 'task',
    name: taskId,
    what: versions === undefined ? 'new' : 'changed',
    detail: `${bytesText(made.zip.length)}, ${(task.input ?? []).join(', ') || 'no input'} -> ${(task.output ?? []).join(', ') || 'no output'}`,
    apply: (output, end) => deployTask(client, taskId, task, made, description, output, end),
  };
}

async function deployTask(
  client: Millrace,
  taskId: string,
  task: ProjectTask,
  made: Bundle,
  description: string,
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  const {
    code: _code,
    input = [],
    output: outputs = [],
    handler = made.handler,
    description: _said,
    ...rest
  } = task;
  const bar = progressBar(output, `uploading ${taskId}`, bytesText);
  const started = performance.now();
  try {
    const { version } = await client.tasks.deploy(
      taskId,
      made.zip,
      {
        ...rest,
        handler,
        runtime: task.runtime ?? usualRuntime,
        inputQueueNames: [...input],
        outputQueueNames: [...outputs],
        switchToNow: true,
        description,
      },
      { signal, onProgress: ({ bytes, total }) => bar.update(bytes, total) },
    );
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    bar.end(`Deployed ${taskId} as version ${version} in ${seconds} s.`);
    if (output.json) output.line(safeJson({ taskId, version }));
    const { endpointUrl } = await client.tasks.status(taskId, { signal });
    if (endpointUrl !== undefined) output.note(`Its endpoint is ${endpointUrl}`);
  } finally {
    bar.end();
  }
}

/** Shows changes as a person reads them. */
export function showChanges(output: Output, changes: readonly Change[]): void {
  for (const { kind, name, what, detail } of changes) {
    const sign = what === 'new' ? styled('green', '+') : styled('yellow', '~');
    output.note(sign, ` ${kind} ${name}  `, styled('dim', detail));
  }
}

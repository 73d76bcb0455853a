import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { NamedType } from '@millrace/contract';
import { CommandError } from './command.ts';
import { runtimes } from './runtimes.ts';

type DeployRequest = NamedType<'DeployRequest'>;

/** A task of a project: where its code is, and how it is deployed. */
export interface ProjectTask
  extends Partial<
    Pick<
      DeployRequest,
      | 'runtime'
      | 'endpoint'
      | 'environment'
      | 'memoryMb'
      | 'timeoutSec'
      | 'batchSize'
      | 'concurrency'
      | 'maxAttempts'
    >
  > {
  /** A file of TypeScript or JavaScript that is bundled; one of another runtime, or a folder, is packed as it is. */
  readonly code: string;
  /** `handler` of `index`, or of the one file that is packed, unless given. */
  readonly handler?: string;
  readonly input?: readonly string[];
  readonly output?: readonly string[];
  readonly description?: string;
}

/** What millrace.json declares. */
export interface Project {
  readonly directory: string;
  /** The file itself, and those of schemas. */
  readonly files: readonly string[];
  readonly topics: Readonly<Record<string, NamedType<'Topic'>>>;
  /** JSON Schemas by topic, or the names of files that have them. */
  readonly schemas: Readonly<Record<string, object>>;
  readonly tasks: Readonly<Record<string, ProjectTask>>;
}

export const projectFile = 'millrace.json';

const taskFields = new Set([
  'code',
  'handler',
  'input',
  'output',
  'description',
  'runtime',
  'endpoint',
  'environment',
  'memoryMb',
  'timeoutSec',
  'batchSize',
  'concurrency',
  'maxAttempts',
]);

/** Reads the project of a folder, or of one above it; undefined when there is none. */
export async function findProject(from: string): Promise<Project | undefined> {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const text = await readFile(join(folder, projectFile), 'utf8').catch(() => undefined);
    if (text !== undefined) return parseProject(folder, text);
    if (folder === dirname(folder)) return undefined;
  }
}

export async function requireProject(from: string): Promise<Project> {
  const project = await findProject(from);
  if (project === undefined)
    throw new CommandError(`There is no ${projectFile} here. \`millrace task init <task>\` makes one.`);
  return project;
}

async function parseProject(directory: string, text: string): Promise<Project> {
  const file = join(directory, projectFile);
  const wrong = (what: string) => new CommandError(`${file}: ${what}`);
  const whole = recordOf(parseJson(text, file), () => wrong('is not a JSON object.'));
  const known = new Set(['$schema', 'topics', 'schemas', 'tasks']);
  const unknown = Object.keys(whole).find((name) => !known.has(name));
  if (unknown !== undefined)
    throw wrong(`"${unknown}" is not a field of it; known are ${[...known].join(', ')}.`);
  const tasks: Record<string, ProjectTask> = {};
  for (const [id, value] of Object.entries(
    recordOf(whole.tasks ?? {}, () => wrong('"tasks" is not an object.')),
  )) {
    const task = recordOf(value, () => wrong(`the task "${id}" is not an object.`));
    const strange = Object.keys(task).find((name) => !taskFields.has(name));
    if (strange !== undefined) throw wrong(`the task "${id}" has a field "${strange}" that is not known.`);
    if (typeof task.code !== 'string') throw wrong(`the task "${id}" does not say where its "code" is.`);
    if (task.runtime !== undefined && !runtimes.some((runtime) => runtime === task.runtime))
      throw wrong(`"runtime" of the task "${id}" is one of ${runtimes.join(', ')}.`);
    for (const name of ['input', 'output']) {
      const list = task[name] ?? [];
      if (!Array.isArray(list) || list.some((entry) => typeof entry !== 'string'))
        throw wrong(`"${name}" of the task "${id}" is a list of names.`);
    }
    tasks[id] = { ...task, code: task.code };
  }
  const files = [file];
  const schemas: Record<string, object> = {};
  for (const [topic, value] of Object.entries(
    recordOf(whole.schemas ?? {}, () => wrong('"schemas" is not an object.')),
  )) {
    if (typeof value === 'string') {
      const path = resolve(directory, value);
      files.push(path);
      const schema = await readFile(path, 'utf8').catch(() => {
        throw wrong(`the schema of "${topic}" is not at ${path}.`);
      });
      schemas[topic] = recordOf(parseJson(schema, path), () => wrong(`${path} is not a JSON Schema.`));
    } else schemas[topic] = recordOf(value, () => wrong(`the schema of "${topic}" is an object or a file.`));
  }
  const topics: Record<string, NamedType<'Topic'>> = {};
  for (const [name, value] of Object.entries(
    recordOf(whole.topics ?? {}, () => wrong('"topics" is not an object.')),
  ))
    topics[name] = recordOf(value, () => wrong(`the topic "${name}" is not an object.`));
  return { directory, files, topics, schemas, tasks };
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function recordOf(value: unknown, otherwise: () => Error): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw otherwise();
  return { ...value };
}

import { createHash } from 'node:crypto';
import type { Bundle } from './bundle.ts';
import type { ProjectTask } from './project.ts';

const mostDescription = 900;

/** Says which code and settings a version was made of, so that the same is not deployed twice. */
export function describeVersion(task: ProjectTask, { digest }: Pick<Bundle, 'digest'>): string {
  const { code: _code, description = '', ...settings } = task;
  const sum = createHash('sha256')
    .update(JSON.stringify(sorted(settings)))
    .digest('hex')
    .slice(0, 8);
  return `${description === '' ? '' : `${description.slice(0, mostDescription)} `}[${digest}-${sum}]`;
}

/** The same value with fields in one order all the way down. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, field]) => [name, sorted(field)]);
}

import type { Operation } from '@millrace/contract';
import { credentialVariable } from './access.ts';

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function pathOf(operation: Operation): string {
  const values = operation.example.path ?? {};
  return operation.path
    .replaceAll(/\{([^}]*)\}/g, (_placeholder, name: string) => encodeURIComponent(values[name] ?? name))
    .replace('*', values['*'] ?? '');
}

function queryOf(operation: Operation): string {
  const pairs = Object.entries(operation.example.query ?? {}).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** JSON on one line while that is easy to read, and indented beyond. */
export function readableJson(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= 60 ? line : JSON.stringify(value, undefined, 2);
}

function bodyArguments(operation: Operation): readonly string[] {
  const { body, example } = operation;
  if (body === undefined || example.body === undefined) return [];
  if ('raw' in body && body.mediaTypes.includes('application/x-ndjson') && Array.isArray(example.body)) {
    const lines = example.body.map((line) => JSON.stringify(line)).join('\n');
    return [`-H 'Content-Type: application/x-ndjson'`, `--data-binary ${shellQuoted(lines)}`];
  }
  return [`-H 'Content-Type: application/json'`, `-d ${shellQuoted(readableJson(example.body))}`];
}

function isEndless(operation: Operation): boolean {
  return Object.values(operation.responses).every(
    ({ schema, mediaTypes }) => schema === undefined && mediaTypes?.includes('text/event-stream') === true,
  );
}

/** A call of the operation's example that can be pasted into a shell. */
export function curlExample(operation: Operation, baseUrl: string): string {
  const variable = credentialVariable(operation.access);
  const method = operation.method === 'GET' || operation.method === 'ANY' ? '' : `-X ${operation.method} `;
  const url = `${baseUrl.replace(/\/+$/, '')}${pathOf(operation)}${queryOf(operation)}`;
  return [
    // Without buffering, each event is shown as it comes.
    `curl ${isEndless(operation) ? '-N ' : ''}${method}${shellQuoted(url)}`,
    ...(variable === undefined ? [] : [`-H "Authorization: Bearer $${variable}"`]),
    ...Object.entries(operation.example.headers ?? {}).map(
      ([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`,
    ),
    ...bodyArguments(operation),
  ].join(' \\\n  ');
}

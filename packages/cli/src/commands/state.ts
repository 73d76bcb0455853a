import { MillraceError } from '@millrace/client';
import { type Command, UsageError } from '../command.ts';
import { agreeTo } from '../prompt.ts';
import { safeJson } from '../safe-text.ts';
import { oneLine } from '../table.ts';

const keyParts = { name: 'part', summary: 'the parts of the key', many: true } as const;

function attributesOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Told below.
  }
  throw new UsageError(`The attributes are a JSON object, such as '{"visits":1}'.`);
}

export const stateCommands: readonly Command[] = [
  {
    path: ['state', 'get'],
    summary: 'Show an entry',
    arguments: [keyParts],
    examples: ['millrace state get user 42'],
    run: async ({ client, arguments: given, output, signal }) => {
      const entry = await (await client()).state.get(given.many('part'), { signal });
      if (entry === undefined)
        throw new MillraceError({
          code: 'STATE_NOT_FOUND',
          status: 404,
          detail: `There is no entry ${given.many('part').join(':')}.`,
        });
      output.value(entry, () => safeJson(entry.attributes, 2));
    },
  },
  {
    path: ['state', 'set'],
    summary: 'Write an entry',
    arguments: [keyParts],
    options: {
      attributes: { value: 'json', summary: 'its attributes, as a JSON object' },
      ttl: { value: 'seconds', summary: 'after which it is gone' },
      'expected-version': {
        value: 'number',
        summary: 'only if it has this version; 0: only if there is none',
      },
    },
    examples: [`millrace state set user 42 --attributes '{"visits":1}' --ttl 3600`],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const entry = await (await client()).state.set(
        given.many('part'),
        attributesOf(options.text('attributes') ?? ''),
        {
          ttlInSec: options.number('ttl', { least: 1 }),
          expectedVersion: options.number('expected-version'),
          signal,
        },
      );
      output.value(entry, () => `${entry.mergedKey}  version ${entry.version}`);
    },
  },
  {
    path: ['state', 'list'],
    summary: 'List entries whose keys begin with these parts',
    arguments: [{ ...keyParts, optional: true }],
    options: { limit: { value: 'number', summary: 'at most so many; 1000 unless given' } },
    examples: ['millrace state list user', 'millrace state list --json'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const limit = options.number('limit', { least: 1 }) ?? 1000;
      const entries = [];
      for await (const entry of (await client()).state.list(given.many('part'), { signal })) {
        entries.push(entry);
        if (entries.length >= limit) break;
      }
      output.list(entries, {
        key: (entry) => entry.mergedKey,
        version: (entry) => entry.version,
        expires: (entry) =>
          typeof entry.ttlInEpochSec === 'number' ? new Date(entry.ttlInEpochSec * 1000).toISOString() : '',
        attributes: (entry) => oneLine(JSON.stringify(entry.attributes), 80),
      });
    },
  },
  {
    path: ['state', 'delete'],
    summary: 'Delete an entry',
    arguments: [keyParts],
    options: { yes: { short: 'y', summary: 'do not ask' } },
    examples: ['millrace state delete user 42 --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo({ signal }, `Delete the entry ${given.many('part').join(':')}?`, options.flag('yes'));
      await (await client()).state.delete(given.many('part'), { signal });
      output.done({ deleted: given.many('part') }, 'Deleted.');
    },
  },
];

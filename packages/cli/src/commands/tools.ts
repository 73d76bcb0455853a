import { statfs } from 'node:fs/promises';
import { Millrace, MillraceError } from '@millrace/client';
import { type Command, CommandError, type Invocation, UsageError } from '../command.ts';
import { completionScript, shells } from '../completion.ts';
import { styled } from '../output.ts';
import { safeJson } from '../safe-text.ts';

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
}

const oldestNode = 26;
const leastFreeBytes = 1_000_000_000;

async function examine(invocation: Invocation): Promise<Finding[]> {
  const { signal, profiles } = invocation;
  const findings: Finding[] = [];
  const note = (what: string, ok: boolean, detail: string) => findings.push({ what, ok, detail });
  const major = Number(process.versions.node.split('.')[0]);
  note('node', major >= oldestNode, process.version);
  const { bavail, bsize } = await statfs('.');
  note('disk', bavail * bsize > leastFreeBytes, `${Math.round((bavail * bsize) / 1e9)} GB free here`);
  const isOpen = await profiles.isOpenToOthers();
  note('config', !isOpen, `${profiles.file}${isOpen ? ' can be read by others: chmod 600 it' : ''}`);
  const endpoint = await invocation.endpoint();
  const started = performance.now();
  try {
    await new Millrace({ endpoint, retry: { attempts: 1 } }).ping({ signal });
    note('service', true, `${endpoint} answers in ${Math.round(performance.now() - started)} ms`);
  } catch (error) {
    note(
      'service',
      false,
      `${error instanceof Error ? error.message : error} Start it with \`millrace serve\`.`,
    );
    return findings;
  }
  const ready = await fetch(new URL('/readyz', endpoint), { signal });
  note(
    'ready',
    ready.ok,
    ready.ok ? 'its engines answer' : `/readyz answers ${ready.status}: ${await ready.text()}`,
  );
  const client = await invocation.client();
  try {
    const who = await client.authentication.whoAmI({ signal });
    note('credential', true, `signed in as ${who.username}`);
  } catch (error) {
    const key = error instanceof MillraceError && error.status === 403;
    note('credential', key, key ? 'an API key' : 'none that is accepted. Run `millrace login`.');
  }
  try {
    await client.organizations.rateLimit({ signal });
    note('organization', true, 'found');
  } catch (error) {
    note('organization', false, error instanceof Error ? error.message : String(error));
  }
  return findings;
}

export const toolCommands: readonly Command[] = [
  {
    path: ['doctor'],
    summary: 'Check that everything is in place',
    examples: ['millrace doctor'],
    run: async (invocation) => {
      const { output } = invocation;
      const findings = await examine(invocation);
      if (output.json) output.line(safeJson(findings));
      else
        for (const { what, ok, detail } of findings)
          output.line(ok ? styled('green', 'ok ') : styled('red', 'no '), ` ${what.padEnd(12)} ${detail}`);
      if (findings.some(({ ok }) => !ok)) throw new CommandError('Not everything is in place.');
    },
  },
  {
    path: ['completion'],
    summary: 'Print a script that completes commands in a shell',
    arguments: [{ name: 'shell', summary: shells.join(', ') }],
    examples: [
      'source <(millrace completion bash)',
      "echo 'source <(millrace completion zsh)' >> ~/.zshrc",
      'millrace completion fish > ~/.config/fish/completions/millrace.fish',
    ],
    run: async ({ arguments: given, output }) => {
      const { commands } = await import('./index.ts');
      const script = completionScript(given.text('shell'), commands);
      if (script === undefined) throw new UsageError(`There are scripts for ${shells.join(', ')}.`);
      output.line(script);
    },
  },
];

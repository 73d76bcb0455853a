import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { commands } from './commands/index.ts';
import { completionScript, shells } from './completion.ts';

const run = promisify(execFile);

/** What bash would offer after these words, the last of which is being typed. */
async function complete(...words: string[]): Promise<string[]> {
  const script = `${completionScript('bash', commands)}
COMP_WORDS=(millrace "$@")
COMP_CWORD=$#
_millrace
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await run('bash', ['--norc', '-c', script, 'bash', ...words], { timeout: 10_000 });
  return stdout.split('\n').filter((line) => line !== '');
}

describe('completion in bash', () => {
  it('offers nouns, then verbs, then options', async () => {
    assert.deepEqual(await complete('top'), ['topic']);
    assert.ok((await complete('')).includes('query'));
    assert.deepEqual(await complete('topic', 'pu'), ['publish']);
    assert.deepEqual(await complete('topic', 'schema', ''), ['get', 'set', 'recalculate']);
    assert.deepEqual(await complete('topic', 'publish', '--fi'), ['--file']);
    assert.ok((await complete('query', '')).includes('run'));
  });

  it('goes on after arguments and after options with their values', async () => {
    assert.deepEqual(await complete('topic', 'publish', 'clicks', '--ke'), ['--key']);
    assert.deepEqual(await complete('--profile', 'topic', 'topic', 'ta'), ['tail']);
    assert.deepEqual(await complete('--json', 'topic', 'ta'), ['tail']);
    assert.deepEqual(await complete('help', 'task', 'rollb'), ['rollback']);
    assert.deepEqual(await complete('completion', 'f'), ['fish']);
  });

  it('offers files where a value or an argument is wanted', async () => {
    assert.deepEqual(await complete('topic', 'publish', 'clicks', '--file', 'a'), []);
    assert.deepEqual(await complete('topic', 'publish', 'cli'), []);
  });
});

describe('completion scripts', () => {
  it('are there for every shell and name every command', () => {
    for (const shell of shells) {
      const script = completionScript(shell, commands) ?? '';
      for (const { path } of commands)
        assert.ok(script.includes(path.at(-1) ?? ''), `${shell} ${path.join(' ')}`);
    }
    assert.equal(completionScript('tcsh', commands), undefined);
  });
});

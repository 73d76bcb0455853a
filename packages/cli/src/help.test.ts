import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { commands } from './commands/index.ts';
import { derivedFiles } from './derived-files.ts';
import { helpOf } from './help.ts';

const root = join(import.meta.dirname, '../../..');

describe('help', () => {
  it('lists every noun, the options of all, and the exit codes', () => {
    const text = helpOf(commands, []);
    for (const { path } of commands) assert.ok(text.includes(`  ${path[0]} `), path.join(' '));
    for (const code of [' 0 ', ' 1 ', ' 2 ', ' 3 ', ' 4 ', ' 130 ']) assert.ok(text.includes(code), code);
    assert.match(text, /--api-key <key>\s+.*MILLRACE_API_KEY/);
  });

  it('of a noun lists its verbs, and of a command its options and examples', () => {
    assert.match(helpOf(commands, ['topic']), /\n {2}publish +Publish messages/);
    assert.match(helpOf(commands, ['topic', 'schema']), /millrace topic schema <command>[\s\S]*recalculate/);
    const text = helpOf(commands, ['topic', 'publish']);
    assert.match(text, /usage: millrace topic publish <topic> \[options\]/);
    assert.match(text, /-f, --file <file>/);
    assert.match(text, /examples:\n {2}millrace topic publish/);
  });

  it('of query shows the prompt and its verbs', () => {
    assert.match(helpOf(commands, ['query']), /usage: millrace query\n[\s\S]*\n {2}run +Run a query/);
  });

  it('fits into a terminal', () => {
    for (const { path } of commands)
      for (const line of helpOf(commands, path).split('\n')) assert.ok(line.length <= 130, line);
  });
});

describe('what is derived from the commands', () => {
  for (const [path, text] of Object.entries(derivedFiles()))
    it(`is in ${path}, which \`node tools/derive.ts\` writes`, async () => {
      const written = await readFile(join(root, path), 'utf8');
      // How JSON is laid out is up to the formatter.
      if (path.endsWith('.json')) assert.deepEqual(JSON.parse(written), JSON.parse(text));
      else assert.equal(written, text);
    });
});

/** What the completion scripts do in the shells they are for, installed as the reference says. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify, stripVTControlCharacters } from 'node:util';
import { type Desk, example, newDesk } from './reference-desk.ts';

const { MILLRACE_TEST_ZSH: zsh = '', MILLRACE_TEST_FISH: fish = '' } = process.env;
const noShells = zsh === '' || fish === '' ? 'zsh and fish are not here' : false;
const execute = promisify(execFile);
const milliseconds = 60_000;

/**
 * A zsh with another one at its terminal, where it types each of its arguments and then tab, as a person
 * does. Ctrl-T, which no completion can print, tells what the line has become and empties it.
 */
const typist = `
zmodload zsh/zpty
zpty shell "$1" -d -i
zpty -w shell 'tell() { print -r -- "<<$BUFFER>>"; BUFFER="" }; zle -N tell; bindkey "^T" tell; print is$((1 + 1))'
zpty -r shell screen '*is2*'
shift
for line in "$@"; do
  zpty -w -n shell "$line"$'\\t\\x14'
  zpty -r shell screen '*<<*>>*'
  print -rn -- "$screen"$'\\0'
done
zpty -d shell
`;

describe('completion', { skip: noShells, timeout: 600_000 }, () => {
  let desk: Desk;
  let environment: Record<string, string>;
  before(async () => {
    desk = await newDesk({});
    // The shells look for their own files where people without this variable have them.
    const { XDG_CONFIG_HOME: _elsewhere, ...variables } = desk.environment;
    environment = variables;
    await mkdir(join(desk.directory, '.config/fish/completions'), { recursive: true });
    await writeFile(join(desk.directory, 'clicks.ndjson'), '');
    await example(desk, 'millrace completion fish > ~/.config/fish/completions/millrace.fish');
    await example(desk, "echo 'source <(millrace completion zsh)' >> ~/.zshrc");
  });
  after(() => desk.remove());

  const output = async (program: string, words: readonly string[]) => {
    const options = { cwd: desk.directory, env: environment, timeout: milliseconds };
    return (await execute(program, words, options)).stdout;
  };

  /** For each line what it becomes with tab, and all that is on the screen then. */
  const typed = async (...lines: string[]) => {
    const screens = (await output(zsh, ['-f', '-c', typist, 'zsh', zsh, ...lines])).split('\0').slice(0, -1);
    return screens.map((raw) => {
      const screen = stripVTControlCharacters(raw);
      return { screen, line: /<<(.*)>>/.exec(screen)?.[1] };
    });
  };

  /** What fish would offer after a line. */
  const offered = async (line: string) =>
    (await output(fish, ['-c', 'complete -C $argv[1]', line])).split('\n').filter((word) => word !== '');

  it('in zsh finishes nouns, verbs, options and names of files', async () => {
    const expected = {
      'millrace to': 'millrace topic ',
      'millrace topic pu': 'millrace topic publish ',
      'millrace topic publish --fi': 'millrace topic publish --file ',
      'millrace topic publish clicks --ke': 'millrace topic publish clicks --key ',
      'millrace topic publish clicks --file cl': 'millrace topic publish clicks --file clicks.ndjson ',
      'millrace --profile topic topic ta': 'millrace --profile topic topic tail ',
      'millrace help task rollb': 'millrace help task rollback ',
      'millrace completion f': 'millrace completion fish ',
    };
    const lines = (await typed(...Object.keys(expected))).map(({ line }) => line);
    assert.deepEqual(lines, Object.values(expected));
  });

  it('in zsh shows what may follow where there are several', async () => {
    const [schema] = await typed('millrace topic schema ');
    assert.match(schema?.screen ?? '', /get +recalculate +set/);
  });

  it('in fish offers nouns, then verbs, then options', async () => {
    assert.deepEqual(await offered('millrace to'), ['topic']);
    assert.deepEqual(await offered('millrace topic pu'), ['publish']);
    assert.deepEqual(await offered('millrace topic schema '), ['get', 'recalculate', 'set']);
    assert.deepEqual(await offered('millrace topic publish --fi'), ['--file']);
    assert.deepEqual(await offered('millrace help task rollb'), ['rollback']);
    assert.ok((await offered('millrace ')).includes('query'));
  });

  it('in fish goes on after arguments and after options with their values', async () => {
    assert.deepEqual(await offered('millrace topic publish clicks --ke'), ['--key']);
    assert.deepEqual(await offered('millrace --profile topic topic ta'), ['tail']);
    assert.deepEqual(await offered('millrace --json topic ta'), ['tail']);
  });

  it('in fish offers files where a value or an argument is wanted, and nowhere else', async () => {
    await writeFile(join(desk.directory, 'fishes.txt'), '');
    assert.deepEqual(await offered('millrace completion fi'), ['fish']);
    assert.deepEqual(await offered('millrace topic publish clicks --file fi'), ['fishes.txt']);
    assert.deepEqual(await offered('millrace topic publish cli'), ['clicks.ndjson']);
  });
});

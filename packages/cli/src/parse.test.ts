import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Command, UsageError } from './command.ts';
import { commands } from './commands/index.ts';
import { type Parsed, parse } from './parse.ts';

type ParsedCommand = Extract<Parsed, { kind: 'command' }>;

function command(...words: string[]): ParsedCommand {
  const parsed = parse(commands, words);
  assert.equal(parsed.kind, 'command');
  assert.ok(parsed.kind === 'command');
  return parsed;
}

function refusal(...words: string[]): string {
  try {
    parse(commands, words);
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return error.message;
  }
  assert.fail(`${words.join(' ')} is not refused`);
}

describe('the words of a command line', () => {
  it('name a command, wherever its options stand', () => {
    const ways = [
      ['topic', 'publish', 'clicks', '--file', 'a.csv', '--key', '/user'],
      ['--profile', 'x', 'topic', 'publish', '--file=a.csv', 'clicks', '--key=/user'],
      ['topic', 'publish', '--key', '/user', '-f', 'a.csv', '--', 'clicks'],
    ];
    for (const words of ways) {
      const parsed = command(...words);
      assert.deepEqual(parsed.command.path, ['topic', 'publish'], words.join(' '));
      assert.equal(parsed.arguments.text('topic'), 'clicks');
      assert.equal(parsed.options.text('file'), 'a.csv');
      assert.equal(parsed.options.text('key'), '/user');
    }
  });

  it('choose the longest command that fits', () => {
    assert.deepEqual(command('query').command.path, ['query']);
    assert.deepEqual(command('query', 'run', 'SELECT', '1').command.path, ['query', 'run']);
    assert.deepEqual(command('topic', 'schema', 'get', 'clicks').command.path, ['topic', 'schema', 'get']);
    assert.deepEqual(command('query', 'run', 'SELECT', '1').arguments.many('sql'), ['SELECT', '1']);
  });

  it('take options that may be repeated, and count numbers', () => {
    const { options } = command('topic', 'set', 'clicks', '--stream', 'a', '--stream', 'b', '--batch');
    assert.deepEqual(options.many('stream'), ['a', 'b']);
    assert.equal(options.flag('batch'), true);
    const tail = command('topic', 'tail', 'clicks', '--limit', '12').options;
    assert.equal(tail.number('limit', { least: 1 }), 12);
    for (const bad of ['0', '1.5', 'x', '1e3', '99999999999999999999']) {
      const { options: given } = command('topic', 'tail', 'clicks', '--limit', bad);
      assert.throws(() => given.number('limit', { least: 1 }), UsageError, bad);
    }
  });

  it('are refused with what was probably meant', () => {
    assert.match(refusal('topc', 'list'), /no command `topc list`.*Did you mean `topic list`/);
    assert.match(refusal('topic', 'lst'), /Did you mean `topic list`/);
    assert.match(refusal('topic', 'publish', 'c', '--fil', 'x'), /no option --fil\. Did you mean --file/);
    assert.match(refusal('query', 'rn', 'SELECT 1'), /Did you mean `query run`/);
    assert.match(refusal('help', 'nonsense'), /no command `nonsense`/);
    assert.match(refusal('topic', 'publish'), /needs <topic>/);
    assert.match(refusal('topic', 'list', 'x'), /does not take "x"/);
    assert.match(refusal('topic', 'list', '--organization'), /argument missing/);
    assert.match(refusal('--json'), /Which command/);
    assert.doesNotMatch(refusal('zzzzzzzzzzzz'), /Did you mean/);
  });

  it('are refused where one is empty, as when a variable of the shell is not set', () => {
    assert.equal(refusal('confirm', 'ada', ''), '<code> is empty: it is the six digits.');
    assert.match(refusal('query', 'run', ''), /<sql> is empty/);
    assert.match(refusal('state', 'get', 'user', ''), /<part> is empty/);
    assert.match(refusal('query', 'schema', ''), /<table> is empty/);
  });

  it('ask for help of all, of a noun and of a command', () => {
    const of = (...words: string[]) => parse(commands, words);
    assert.deepEqual(of(), { kind: 'help', of: [] });
    assert.deepEqual(of('--help'), { kind: 'help', of: [] });
    assert.deepEqual(of('topic'), { kind: 'help', of: ['topic'] });
    assert.deepEqual(of('topic', '-h'), { kind: 'help', of: ['topic'] });
    assert.deepEqual(of('topic', 'publish', '--help'), { kind: 'help', of: ['topic', 'publish'] });
    assert.deepEqual(of('help', 'topic', 'publish'), { kind: 'help', of: ['topic', 'publish'] });
    assert.deepEqual(of('--version'), { kind: 'version' });
  });
});

describe('the table of commands', () => {
  it('has no command twice, and no option that hides one of all commands', () => {
    const paths = commands.map(({ path }) => path.join(' '));
    assert.equal(new Set(paths).size, paths.length);
    for (const { path, options } of commands) {
      const shorts = Object.values(options ?? {}).flatMap(({ short }) => short ?? []);
      assert.equal(new Set(shorts).size, shorts.length, path.join(' '));
      for (const short of shorts) assert.ok(short !== 'h' && short !== 'q', path.join(' '));
    }
  });

  it('has all verbs that are promised', () => {
    const promised =
      'serve;dev;demo;login;whoami;doctor;completion;deploy;query;' +
      'org create|list|use|invite|members|rate-limit;key create|list|revoke;' +
      'topic list|set|delete|publish|tail|files|download;topic schema get|set|recalculate;' +
      'task init|deploy|list|status|versions|activate|rollback|pause|resume|delete|logs|invoke|dead-letters|redrive;' +
      'state get|set|list|delete;query run|status|results|history|cancel|schema';
    const known = new Set(commands.map(({ path }) => path.join(' ')));
    for (const group of promised.split(';')) {
      const verbs = group.split(' ').at(-1)?.split('|') ?? [];
      const noun = group.split(' ').slice(0, -1);
      for (const verb of verbs) assert.ok(known.has([...noun, verb].join(' ')), `${noun.join(' ')} ${verb}`);
    }
  });

  it('asks before everything that cannot be undone', () => {
    const dangerous = /^(topic delete|task delete|task purge|state delete|key revoke|org remove)$/;
    const asking = (each: Command) => each.options?.yes !== undefined;
    for (const each of commands)
      assert.equal(asking(each), dangerous.test(each.path.join(' ')), each.path.join(' '));
  });

  it('has examples that parse', () => {
    for (const { path, examples } of commands) {
      assert.ok(examples.length > 0, path.join(' '));
      for (const example of examples) {
        const text = /(?:^|\(|\| )millrace ([^|>)]*)/.exec(example)?.[1] ?? '';
        const words = [...text.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
          (match) => match[1] ?? match[2] ?? match[3] ?? '',
        );
        const parsed = parse(commands, words);
        assert.ok(parsed.kind === 'command', example);
        assert.deepEqual(parsed.command.path, path, example);
      }
    }
  });
});

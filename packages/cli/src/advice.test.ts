import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MillraceError } from '@millrace/client';
import { buildContract, problems } from '@millrace/contract';
import { advised, nextStepOf, sentenceOf } from './advice.ts';
import { commands } from './commands/index.ts';
import { parse } from './parse.ts';

const explanations = new Map<string, string>(
  Object.entries(problems).map(([code, { explanation }]) => [code, explanation]),
);

function textOf(code: string): string {
  const error = new MillraceError({ code, status: 400, detail: explanations.get(code) ?? '' });
  return `${sentenceOf(error)} ${nextStepOf(error) ?? ''}`;
}

describe('advice', () => {
  it('is about problems that there are, and names commands that there are', () => {
    for (const code of advised) {
      assert.ok(explanations.has(code), code);
      for (const [, line = ''] of textOf(code).matchAll(/`millrace ([^`]*)`/g)) {
        const parsed = parse(commands, line.split(' '));
        assert.equal(parsed.kind, 'command', line);
      }
    }
  });

  it('is given in the place of every text that names an operation', () => {
    const operations = Object.keys(buildContract().operations).filter((id) => /[A-Z]/.test(id));
    // No command has to do with one-time codes.
    const elsewhere = ['TOTP_ALREADY_ENABLED', 'TOTP_NOT_ENROLLED'];
    for (const code of explanations.keys()) {
      if (elsewhere.includes(code)) continue;
      const named = operations.filter((id) => new RegExp(`\\b${id}\\b`).test(textOf(code)));
      assert.deepEqual(named, [], code);
    }
  });

  it('names what the command was about', () => {
    const parsed = parse(commands, ['topic', 'schema', 'get', 'typo']);
    assert.ok(parsed.kind === 'command');
    const error = new MillraceError({ code: 'SCHEMA_NOT_FOUND', status: 404, detail: 'Upload one.' });
    assert.equal(sentenceOf(error, parsed.arguments), 'The topic typo has no schema.');
    assert.match(nextStepOf(error, parsed.arguments) ?? '', /millrace topic schema recalculate typo/);
  });
});

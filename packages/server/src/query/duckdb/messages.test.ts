import assert from 'node:assert/strict';
import { it } from 'node:test';
import { failureOf } from './messages.ts';

const limits = {
  memoryBytes: 1024 ** 3,
  threads: 2,
  temporaryBytes: 1024 ** 3,
  resultBytes: 1024 ** 2,
  milliseconds: 1000,
};
const told = (type: string, message: string, position?: number, sql = 'SELECT é,\n  x') =>
  failureOf(
    { kind: 'failed', id: 1, type, message, ...(position === undefined ? {} : { position }) },
    sql,
    limits,
  ).message;

it('a failure is told in the words of the engine, with line and column counted in characters', () => {
  assert.equal(
    told('Binder', 'Referenced column "x" not found in FROM clause!\nCandidate bindings: "y"', 13),
    'Binder Error: Referenced column "x" not found in FROM clause (line 2, column 3)\nCandidate bindings: "y"',
  );
});

it('a failure tells no path, no setting and no table of the engine', () => {
  assert.equal(
    told('Catalog', 'Table with name x does not exist!\nDid you mean "pg_am"?', 13),
    'Catalog Error: Table with name x does not exist (line 2, column 3)',
  );
  assert.doesNotMatch(
    told(
      'IO',
      'Cannot open file "/home/me/data/objects/lake/organization=a/topic=b/x.parquet": No such file',
    ),
    /home|organization=/,
  );
  assert.doesNotMatch(
    told(
      'Invalid Input',
      'Malformed JSON in file "/scratch/state/state.ndjson", at byte 1 in record/value 1',
    ),
    /scratch/,
  );
  assert.equal(
    told('Binder', 'It is too deep. Use "SET max_depth TO x" to increase it.'),
    'Binder Error: It is too deep.',
  );
});

it('a limit is told as the limit it is', () => {
  assert.match(
    told('Out of Memory', 'could not allocate block of size 256.0 KiB'),
    /more memory than the 1024 MiB/,
  );
  assert.match(
    told('Out of Memory', "failed to offload data block ... 'max_temp_directory_size' ..."),
    /more temporary space than the 1024 MiB/,
  );
  assert.match(told('Result', 'too large'), /larger than the 1 MiB/);
  assert.doesNotMatch(
    told('INTERNAL', 'Attempted to dereference unique_ptr that is NULL! 0x7f'),
    /unique_ptr/,
  );
});

it('a failure of any length is told soon, and no longer than is of use', () => {
  const startedAt = performance.now();
  for (const unit of ['y', 'y/', 'SET ', '"/', "'/", 'x.']) {
    assert.ok(told('Invalid Input', unit.repeat(500_000)).length < 5000);
  }
  assert.ok(performance.now() - startedAt < 5000);
});

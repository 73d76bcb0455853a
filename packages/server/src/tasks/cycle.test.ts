import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCycle, type Wiring } from './cycle.ts';

const task = (taskId: string, inputs: string[], outputs: string[]): Wiring => ({ taskId, inputs, outputs });
const sameName = (topic: string) => [topic];

describe('a task graph', () => {
  it('may be a chain, a diamond, or a task that nobody feeds', () => {
    assert.equal(findCycle(task('a', ['x'], ['y']), [task('b', ['y'], ['z'])], sameName), undefined);
    const diamond = [task('b', ['y'], ['q']), task('c', ['y'], ['q']), task('d', ['q'], ['end'])];
    assert.equal(findCycle(task('a', ['x'], ['y']), diamond, sameName), undefined);
    assert.equal(findCycle(task('a', [], ['y']), [task('b', ['y'], ['x'])], sameName), undefined);
  });

  it('that feeds itself is found with the shortest way back', () => {
    assert.deepEqual(findCycle(task('a', ['x'], ['x']), [], sameName), [
      'task a',
      'topic x',
      'stream x',
      'task a',
    ]);
    const others = [task('b', ['y'], ['z']), task('c', ['z'], ['x']), task('d', ['y'], ['x'])];
    assert.deepEqual(findCycle(task('a', ['x'], ['y']), others, sameName), [
      'task a',
      'topic y',
      'stream y',
      'task d',
      'topic x',
      'stream x',
      'task a',
    ]);
  });

  it('goes by the streams that a topic feeds, not by its name', () => {
    const feeds = (topic: string) => (topic === 'x' ? ['elsewhere'] : topic === 'y' ? ['x', 'z'] : [topic]);
    assert.equal(findCycle(task('a', ['x'], ['x']), [], feeds), undefined);
    assert.deepEqual(findCycle(task('a', ['x'], ['y']), [], feeds)?.slice(1, 3), ['topic y', 'stream x']);
  });

  it('ends also where others feed each other', () => {
    const others = [task('b', ['y'], ['z']), task('c', ['z'], ['y'])];
    assert.equal(findCycle(task('a', ['x'], ['y']), others, sameName), undefined);
  });

  it('is that of the new version, not of the one before', () => {
    const before = task('a', ['x'], ['x']);
    assert.equal(findCycle(task('a', ['x'], ['y']), [before], sameName), undefined);
  });
});

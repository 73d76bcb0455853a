import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openSite } from './execution.fixture.ts';
import { pathsHidden } from './host-paths.ts';

it('places of this machine are named as the task would know them', () => {
  const hide = pathsHidden(['/data/tasks/a'], ['/data']);
  assert.equal(hide('at /data/tasks/a/index.mjs:3'), 'at /var/task/index.mjs:3');
  assert.equal(hide('in /data/scratch/x'), 'in /var/runtime/scratch/x');
  assert.equal(hide(`at ${import.meta.dirname}/bootstraps/node.mjs`).includes(import.meta.dirname), false);
});

it('a handler that does not load is refused without a place of this machine', async () => {
  const site = await openSite();
  try {
    const version = await site.version({ 'index.mjs': "import './missing.mjs';" });
    const refused = await site.execution.probe(version, AbortSignal.timeout(20_000));
    assert.ok(!refused.ok);
    assert.match(refused.error, /missing\.mjs/);
    assert.doesNotMatch(refused.error, /\/tmp\/|millrace-execution-|\/packages\/server\//);
  } finally {
    await site.close();
  }
});

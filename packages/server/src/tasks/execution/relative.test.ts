import assert from 'node:assert/strict';
import { relative } from 'node:path';
import { it } from 'node:test';
import { answerOf, openSite } from './execution.fixture.ts';

it('relative folders of code and scratch are as good as whole ones', async () => {
  const outer = await openSite();
  const site = await openSite({
    sandbox: 'auto',
    scratchDirectory: relative('', `${outer.directory}/other`),
  });
  try {
    const version = await site.version({ 'index.js': 'exports.handler = () => "found";' });
    const pool = site.execution.open({ ...version, codeDirectory: relative('', version.codeDirectory) });
    assert.equal(await answerOf(pool), 'found');
  } finally {
    await site.close();
    await outer.close();
  }
});

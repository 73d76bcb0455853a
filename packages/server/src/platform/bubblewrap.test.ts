import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { probeBubblewrap } from './bubblewrap.ts';

it('bubblewrap is not found where the path does not lead to it', async () => {
  assert.equal(await probeBubblewrap('/nowhere:relative:'), undefined);
  assert.equal(await probeBubblewrap(''), undefined);
});

it('a bubblewrap that may not make namespaces is as good as none', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bwrap-'));
  try {
    await writeFile(
      join(folder, 'bwrap'),
      '#!/bin/sh\necho "No permissions to create new namespace" >&2\nexit 1\n',
    );
    await chmod(join(folder, 'bwrap'), 0o755);
    assert.equal(await probeBubblewrap(folder), undefined);
  } finally {
    await rm(folder, { recursive: true });
  }
});

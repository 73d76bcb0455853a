import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const unit = join(import.meta.dirname, '../../deploy/millrace.service');
const noSystemd = 'this machine has no systemd-analyze';

/** The exposure that systemd gives the unit, from 0 to 10, times ten. */
const mostExposure = 35;

/** Each of these was seen to keep bubblewrap, or Node, from working. */
const harmful = [
  'DynamicUser',
  'RestrictSUIDSGID',
  'RestrictNamespaces',
  'ProtectKernelTunables',
  'ProtectKernelLogs',
  'ProtectHostname',
  'ProcSubset',
  'MemoryDenyWriteExecute',
];

describe('the unit for systemd', () => {
  it('is understood by systemd', async (t) => {
    const told = await analyze(['verify', unit]);
    if (told === undefined) return t.skip(noSystemd);
    // A machine without Node 26 in its place is no fault of the unit.
    const faults = told.split('\n').filter((line) => line !== '' && !line.includes('is not executable'));
    assert.deepEqual(faults, []);
  });

  it('holds the service tightly', async (t) => {
    const told = await analyze(['security', '--offline=true', `--threshold=${mostExposure}`, unit]);
    if (told === undefined) return t.skip(noSystemd);
    assert.match(told, /Overall exposure level for millrace\.service: [0-3]\.\d/);
  });

  it('has no restriction under which sandboxes of tasks cannot be made', async () => {
    const text = await readFile(unit, 'utf8');
    const names = [...text.matchAll(/^(\w+)=/gm)].map((found) => found[1] ?? '');
    assert.deepEqual(
      names.filter((name) => harmful.includes(name)),
      [],
    );
  });
});

/** What systemd-analyze says; undefined where it is not installed. */
async function analyze(words: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await execute('systemd-analyze', [...words, '--no-pager']);
    return stdout + stderr;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

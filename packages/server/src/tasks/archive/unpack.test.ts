import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { deflateRawSync } from 'node:zlib';
import { zip, zipOf } from '../../../../../acceptance/zip.ts';
import { archiveSite, limits } from './archive.fixture.ts';
import { unpack } from './unpack.ts';

const MiB = 1024 * 1024;
/** Larger than what is unpacked in one piece, and not the same all over. */
const large = Buffer.from(Array.from({ length: 400_000 }, (_, index) => `${index} `).join(''));

describe('unpacking', { timeout: 120_000 }, () => {
  const site = archiveSite();

  it('gives back every file, packed or not, with plain modes', async () => {
    const outcome = await site.unpack(
      zip([
        { name: 'index.js', content: 'one', mode: 0o600 },
        { name: 'bin/run', content: 'two', mode: 0o4755 },
        { name: 'bin/open', content: 'three', mode: 0o666 },
        { name: 'empty', content: '' },
        { name: 'plain', content: 'four', stored: true },
        { name: 'empty folder/', mode: 0o1777 },
        { name: './dotted/.hidden', content: 'five' },
        { name: 'Größe/漢字 🎈.txt', content: 'six' },
        { name: '..almost', content: 'seven' },
        { name: 'dos', content: 'eight', lie: { attributes: 0x20 } },
      ]),
    );
    assert.ok('files' in outcome, JSON.stringify(outcome));
    assert.deepEqual(await site.unpacked(), {
      'index.js': 'one 644',
      bin: 'folder 755',
      'bin/run': 'two 755',
      'bin/open': 'three 644',
      empty: ' 644',
      plain: 'four 644',
      'empty folder': 'folder 755',
      dotted: 'folder 755',
      'dotted/.hidden': 'five 644',
      Größe: 'folder 755',
      'Größe/漢字 🎈.txt': 'six 644',
      '..almost': 'seven 644',
      dos: 'eight 644',
    });
    assert.equal((await stat(site.code)).mode & 0o7777, 0o755);
  });

  it('gives back large files, packed or not', async () => {
    const random = Buffer.from(large).map((byte, index) => byte ^ (index * 2_654_435_761));
    const outcome = await site.unpack(
      zip([
        { name: 'packed', content: large },
        { name: 'stored', content: random, stored: true, mode: 0o755 },
      ]),
    );
    assert.ok('files' in outcome, JSON.stringify(outcome));
    assert.ok((await readFile(join(site.code, 'packed'))).equals(large));
    assert.ok((await readFile(join(site.code, 'stored'))).equals(random));
    assert.equal((await stat(join(site.code, 'stored'))).mode & 0o777, 0o755);
  });

  it('reads what other tools make', async (test) => {
    await writeFile(join(site.archive, '..', 'index.py'), 'def handler(event, context): return 1\n');
    const program = `import zipfile
with zipfile.ZipFile('code.zip', 'w', zipfile.ZIP_DEFLATED) as z:
    z.write('index.py', 'größe/index.py')
    with z.open('streamed.txt', 'w', force_zip64=True) as f: f.write(b'streamed')
`;
    const made = await promisify(execFile)('python3', ['-c', program], {
      cwd: join(site.archive, '..'),
    }).then(
      () => true,
      () => false,
    );
    if (!made) return test.skip('no python3 here');
    const outcome = await unpack(site.archive, site.code, limits, new AbortController().signal);
    assert.ok('files' in outcome, JSON.stringify(outcome));
    assert.equal((await site.unpacked())['streamed.txt'], 'streamed 644');
  });

  for (const [size, content] of [
    ['small', Buffer.from('x'.repeat(5000))],
    ['large', large],
  ] as const) {
    const honest = { name: 'honest.js', content: 'x' };
    const attempt = (lie: object, stored = false) =>
      site.refusal(zip([honest, { name: 'liar.js', content, stored, lie }, honest2]));
    const honest2 = { name: 'later.js', content: 'x' };

    it(`refuses a ${size} file that inflates to more than it claims`, async () => {
      assert.match(await attempt({ bytes: content.length - 1 }), /"liar.js".*is larger than it claims/);
      assert.match(await attempt({ bytes: 0 }), /is larger than it claims/);
    });

    it(`refuses a ${size} file that inflates to less than it claims`, async () => {
      assert.match(await attempt({ bytes: content.length + 1 }), /is smaller than it claims/);
    });

    it(`refuses a ${size} file whose checksum is wrong`, async () => {
      assert.match(await attempt({ crc32: 1 }), /its checksum is not right/);
      assert.match(await attempt({ crc32: 1 }, true), /its checksum is not right/);
    });

    it(`refuses a ${size} file that cannot be inflated, or whose end is missing`, async () => {
      const packed = deflateRawSync(content);
      assert.match(await attempt({ packed: packed.subarray(0, packed.length >> 1) }), /is damaged/);
      assert.match(await attempt({ packed: Buffer.alloc(packed.length, 0xff) }), /is damaged/);
    });

    it(`refuses a ${size} stored file with two sizes`, async () => {
      assert.match(await attempt({ bytes: content.length + 1 }, true), /damaged/);
    });
  }

  it('stops a bomb at what it claimed, in little memory', async () => {
    const bomb = deflateRawSync(Buffer.alloc(256 * MiB), { level: 9 });
    for (const bytes of [1, 2 * MiB]) {
      const before = process.memoryUsage().arrayBuffers;
      const sentence = await site.refusal(
        zip([{ name: 'bomb', content: 'x', lie: { packed: bomb, bytes, method: 8 } }]),
      );
      assert.match(sentence, /is larger than it claims/);
      assert.ok(process.memoryUsage().arrayBuffers - before < 32 * MiB);
    }
    assert.match(
      await site.refusal(
        zip([{ name: 'bomb', content: 'x', lie: { packed: bomb, bytes: 256 * MiB, method: 8 } }]),
      ),
      /more than 67108864 bytes when unzipped/,
    );
  });

  it('leaves nothing when it is told to stop', async () => {
    const files = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${index}`, 'x']));
    const path = await site.put(zipOf({ ...files, large: large.toString() }));
    const controller = new AbortController();
    const reason = new Error('no longer wanted');
    const unpacking = unpack(path, site.code, limits, controller.signal);
    setImmediate(() => controller.abort(reason));
    await assert.rejects(unpacking, reason);
    await site.nothingLeft();
    await assert.rejects(unpack(path, site.code, limits, AbortSignal.abort(reason)), reason);
    await site.nothingLeft();
  });

  it('leaves what is there when somebody else was quicker', async () => {
    const path = await site.put(zipOf({ 'index.js': 'one' }));
    const signal = new AbortController().signal;
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => unpack(path, site.code, limits, signal)),
    );
    assert.ok(outcomes.every((outcome) => 'files' in outcome));
    assert.deepEqual(await site.unpacked(), { 'index.js': 'one 644' });
    await mkdir(join(site.code, 'mine'));
    await unpack(path, site.code, limits, signal);
    assert.deepEqual(Object.keys(await site.unpacked()).sort(), ['index.js', 'mine']);
  });

  it('takes an archive with as many files as there may be', async () => {
    const entries = Array.from({ length: 20_000 }, (_, index) => ({
      name: `node_modules/p${index % 500}/f${index}.js`,
      content: `module.exports = ${index};`,
    }));
    const started = performance.now();
    const outcome = await site.unpack(zip(entries));
    assert.ok('files' in outcome && outcome.files.length === 20_000);
    assert.ok(performance.now() - started < 60_000);
  });
});

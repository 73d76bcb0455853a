import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { type EntryLies, type ZipEntry, zip, zipOf } from '../../../../../acceptance/zip.ts';
import { archiveSite, limits } from './archive.fixture.ts';
import { checkArchive } from './archive.ts';

const handler = { name: 'index.js', content: 'exports.handler = async () => 1;' };

describe('an archive of code', { timeout: 120_000 }, () => {
  const site = archiveSite();

  it('is described by its files, with what is needed to unpack them', async () => {
    const path = await site.put(
      zip([
        { name: 'lib/' },
        { ...handler, mode: 0o600 },
        { name: 'lib/bin/run', content: '#!', mode: 0o711 },
      ]),
    );
    const archive = await checkArchive(path, limits);
    assert.ok('files' in archive, JSON.stringify(archive));
    assert.deepEqual(archive.folders, ['lib', 'lib/bin']);
    assert.deepEqual(
      archive.files.map(({ path, isExecutable, bytes }) => [path, isExecutable, bytes]),
      [
        ['index.js', false, handler.content.length],
        ['lib/bin/run', true, 2],
      ],
    );
  });

  it('is missing: that is a fault, not a refusal', async () => {
    await assert.rejects(checkArchive(site.archive, limits), { code: 'ENOENT' });
  });

  const badNames: [string | Uint8Array, RegExp][] = [
    ['../escape.js', /entry "\.\.\/escape\.js" of the zip file leads out of the archive with \.\./],
    ['a/../../escape.js', /leads out/],
    ['a/..', /leads out/],
    ['..', /leads out/],
    ['/etc/passwd', /has an absolute path/],
    ['//server/share', /has an absolute path/],
    ['C:/windows/system.ini', /has a drive letter/],
    ['c:evil.js', /has a drive letter/],
    ['..\\escape.js', /has a backslash/],
    ['a\\b.js', /has a backslash/],
    ['index.js\0.txt', /has a NUL/],
    ['a\nb.js', /has a control character/],
    ['\u001b[2Jx.js', /has a control character/],
    ['a//b.js', /has an empty part/],
    ['', /has an empty name/],
    ['.', /has no name/],
    ['x'.repeat(256), /part of more than 255 bytes/],
    ['漢'.repeat(86), /part of more than 255 bytes/],
    [`${'a/'.repeat(70)}b`, /more than 64 folders deep/],
    ['abcdefg/'.repeat(200), /path of more than 1024 bytes/],
    [Buffer.from([0x61, 0xff, 0x62]), /not UTF-8/],
    [Buffer.from([0xc0, 0xae, 0xc0, 0xae, 0x2f, 0x61]), /not UTF-8/],
  ];
  for (const [name, sentence] of badNames) {
    it(`is refused with an entry of the name ${JSON.stringify(String(name).slice(0, 40))}`, async () => {
      assert.match(await site.refusal(zip([handler, { name, content: 'x' }])), sentence);
    });
  }

  it('is refused where the extra field with the name in Unicode leads out', async () => {
    const plain = Buffer.from('safe.js');
    const { crc32 } = await import('node:zlib');
    const data = Buffer.concat([Buffer.from([1]), Buffer.alloc(4), Buffer.from('../../x')]);
    data.writeUInt32LE(crc32(plain), 1);
    const extra = Buffer.concat([Buffer.from([0x75, 0x70, data.length, 0]), data]);
    assert.match(
      await site.refusal(zip([{ name: plain, content: 'x', lie: { flags: 0, extra } }])),
      /leads out/,
    );
  });

  const kinds: [string, number, RegExp][] = [
    ['symbolic link', 0o120777, /is a symbolic link/],
    ['character device', 0o020666, /is a device, a pipe or a socket/],
    ['block device', 0o060666, /is a device/],
    ['pipe', 0o010644, /is a device/],
    ['socket', 0o140644, /is a device/],
  ];
  for (const [kind, mode, sentence] of kinds) {
    it(`is refused with a ${kind}`, async () => {
      assert.match(await site.refusal(zip([handler, { name: 'x', content: '/etc/passwd', mode }])), sentence);
      assert.match(await site.refusal(zip([{ name: 'x/', mode }, handler])), sentence);
    });
  }

  const clashes: [string, ZipEntry[], RegExp][] = [
    ['the same name twice', [{ name: 'a' }, { name: 'a' }], /"a" of the zip file is there twice/],
    ['the same name by way of a dot', [{ name: 'a' }, { name: './a' }], /is there twice/],
    ['names that differ by case', [{ name: 'Index.js' }], /"Index.js".*cannot tell from "index.js"/],
    ['folders that differ by case', [{ name: 'lib/a' }, { name: 'LIB/b' }], /cannot tell from "lib"/],
    ['names that differ by encoding', [{ name: 'é' }, { name: 'e\u0301' }], /cannot tell from "é"/],
    ['names that differ by both', [{ name: 'É/a' }, { name: 'e\u0301/b' }], /cannot tell from "É"/],
    ['a file that is a folder too', [{ name: 'a' }, { name: 'a/b' }], /is a file and a folder at once: "a"/],
    ['a folder that is a file too', [{ name: 'a/b' }, { name: 'a' }], /is a file and a folder at once: "a"/],
    ['an empty folder of a file', [{ name: 'a' }, { name: 'a/' }], /is a file and a folder at once/],
    ['a folder with content', [{ name: 'a/', content: 'x' }], /is a folder that has content/],
  ];
  for (const [what, entries, sentence] of clashes) {
    it(`is refused with ${what}`, async () => {
      assert.match(await site.refusal(zip([handler, ...entries])), sentence);
    });
  }

  it('may name a folder more than once', async () => {
    const outcome = await site.unpack(zip([{ name: 'a/' }, { name: 'a/b' }, { name: 'a/' }, { name: './' }]));
    assert.ok('files' in outcome);
    assert.deepEqual(outcome.folders, ['a']);
  });

  const lies: [string, EntryLies, RegExp][] = [
    ['an encrypted entry', { flags: 0x801 }, /is encrypted/],
    ['a strongly encrypted entry', { flags: 0x841 }, /damaged|encrypted/],
    ['a masked directory', { flags: 0x2800 }, /is encrypted/],
    ['a compression it does not know', { method: 12 }, /is packed with method 12/],
    ['two methods', { localMethod: 0 }, /two different methods/],
    ['two names', { localName: 'other.js' }, /two different names/],
    ['an entry beyond its end', { offset: 0x7fffffff }, /damaged/],
    ['an entry whose content is beyond its end', { packedBytes: 0x7fffffff }, /damaged/],
    ['an extra field that is cut off', { extra: Buffer.from([1, 0, 255, 0, 1]) }, /damaged/],
  ];
  for (const [what, lie, sentence] of lies) {
    it(`is refused with ${what}`, async () => {
      assert.match(await site.refusal(zip([{ ...handler, content: 'x'.repeat(500), lie }])), sentence);
    });
  }

  it('is refused when it is empty, or has only folders', async () => {
    assert.equal(await site.refusal(zip([])), 'The zip file is empty.');
    assert.equal(await site.refusal(zip([{ name: 'a/' }])), 'The zip file has no files.');
  });

  it('is refused when it is something else or cut off anywhere', async () => {
    const whole = zip([handler, { name: 'b', content: 'x'.repeat(100) }]);
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('PK'),
      Buffer.from('#!/bin/sh\n'),
      Buffer.alloc(70_000),
    ]) {
      assert.match(await site.refusal(bytes), /not a zip file, or its end is missing/);
    }
    for (let length = 1; length < whole.length; length += 7) {
      assert.match(await site.refusal(whole.subarray(0, length)), /not a zip|damaged/);
    }
    for (let start = 1; start < whole.length; start += 7) {
      assert.match(await site.refusal(whole.subarray(start)), /not a zip|damaged/);
    }
  });

  it('is refused or comes out right, and never brings anything down, whatever byte is changed', async () => {
    const whole = zip([handler, { name: 'a/b', content: 'y'.repeat(50) }], { zip64: {} });
    for (let at = 0; at < whole.length; at += 1) {
      for (const value of [0, 0xff]) {
        const changed = Buffer.from(whole);
        changed[at] = value;
        await checkArchive(await site.put(changed), limits);
      }
    }
  });

  it('may have something in front of it when its offsets say so, and not otherwise', async () => {
    const prefix = Buffer.from('#!/usr/bin/env unzip\n');
    assert.ok('files' in (await site.unpack(zip([handler], { prefix }))));
    const path = await site.put(zip([handler], { prefix, offsetsWithoutPrefix: true }));
    assert.deepEqual(await checkArchive(path, limits), { refusal: 'The zip file is damaged.' });
  });

  it('may have a comment of any length, and not one that hides another end', async () => {
    assert.ok('files' in (await site.unpack(zip([handler], { comment: 'c'.repeat(65_535) }))));
    const path = await site.put(zip([handler], { comment: zipOf({ evil: 'x' }).toString('latin1') }));
    assert.ok('refusal' in (await checkArchive(path, limits)));
    await site.put(Buffer.concat([zip([handler]), Buffer.from('something behind')]));
    assert.ok('refusal' in (await checkArchive(path, limits)));
  });

  it('may have the 64 bit form, and none of its lies', async () => {
    assert.ok('files' in (await site.unpack(zip([handler], { zip64: {} }))));
    for (const most of [2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]) {
      for (const zip64 of [{ entryCount: most }, { directory: most }, { record: most }]) {
        const path = await site.put(zip([handler], { zip64 }));
        assert.ok('refusal' in (await checkArchive(path, limits)), JSON.stringify(Object.keys(zip64)));
      }
      const extra = Buffer.alloc(28);
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(24, 2);
      for (const at of [4, 12, 20]) extra.writeBigUInt64LE(most, at);
      const most32 = 0xffffffff;
      for (const lie of [
        { extra, bytes: most32 },
        { extra, packedBytes: most32 },
        { extra, offset: most32 },
        { extra, bytes: most32, packedBytes: most32, offset: most32 },
        { bytes: most32 },
        { packedBytes: most32 },
      ]) {
        const path = await site.put(zip([{ ...handler, lie }]));
        assert.ok('refusal' in (await checkArchive(path, limits)), JSON.stringify(lie));
      }
    }
  });

  it('has at most so many entries', async () => {
    const many = (count: number) => zip(Array.from({ length: count }, (_, index) => ({ name: `f${index}` })));
    const path = await site.put(many(20_000));
    const archive = await checkArchive(path, limits);
    assert.ok('files' in archive && archive.files.length === 20_000);
    await site.put(many(20_001));
    const expected = { refusal: 'The zip file has more than 20000 files and folders.' };
    assert.deepEqual(await checkArchive(path, limits), expected);
  });

  it('cannot hide entries behind a count that is too low, nor claim more than it has', async () => {
    const entries = [handler, { name: 'hidden.js', content: 'x' }];
    assert.match(await site.refusal(zip(entries, { entryCount: 1 })), /more than 20000 files/);
    assert.match(await site.refusal(zip(entries, { entryCount: 3 })), /damaged/);
    assert.match(await site.refusal(zip(entries, { entryCount: 0 })), /empty/);
  });

  it('has no more folders than it may, though it does not name them', async () => {
    const entries = Array.from({ length: 400 }, (_, index) => ({ name: `${`d${index}/`.repeat(60)}f` }));
    assert.match(await site.refusal(zip(entries), { codeEntries: 1000 }), /more folders than/);
  });

  it('is refused by what it claims to be when unpacked', async () => {
    const entries = Array.from({ length: 5 }, (_, index) => ({
      name: `f${index}`,
      content: 'x'.repeat(300),
    }));
    assert.ok('files' in (await site.unpack(zip(entries), { codeUnzippedBytes: 1500 })));
    const path = await site.put(zip(entries));
    assert.deepEqual(await checkArchive(path, { ...limits, codeUnzippedBytes: 1499 }), {
      refusal: 'The zip file has more than 1499 bytes when unzipped.',
    });
  });

  it('is refused when entries share their bytes', async () => {
    const kernel = { name: 'a', content: Buffer.alloc(1_000_000) };
    const shared = (name: string): ZipEntry => ({ ...kernel, name, lie: { offset: 0, localName: 'a' } });
    assert.match(await site.refusal(zip([kernel, shared('a')])), /there twice|share their bytes/);
    // Names of one length, so that the names agree too: only where their bytes are gives them away.
    const packed = deflateRawSync(Buffer.alloc(1000));
    const inner = zip([{ name: 'bb', content: 'inner' }]).subarray(0, 30 + 2 + 7);
    const outer: ZipEntry = {
      name: 'aa',
      lie: { packed: Buffer.concat([inner, packed]), bytes: inner.length + packed.length, method: 0 },
    };
    const quoted: ZipEntry = { name: 'bb', content: 'inner', lie: { offset: 30 + 2 } };
    assert.match(await site.refusal(zip([outer, quoted])), /share their bytes, as a zip bomb has/);
  });

  it('is refused when an extra field in front of the content covers another entry', async () => {
    const second = zip([{ name: 'bb', content: 'second', stored: true }]).subarray(0, 30 + 2 + 6);
    const first: ZipEntry = { name: 'aa', content: 'first', stored: true, lie: { localExtra: second } };
    const inside: ZipEntry = { name: 'bb', content: 'second', stored: true, lie: { offset: 30 + 2 } };
    assert.match(await site.refusal(zip([first, inside])), /share their bytes/);
  });

  it('is refused when an entry reaches into its directory', async () => {
    const entry: ZipEntry = { name: 'a', content: 'x', stored: true, lie: { packedBytes: 20, bytes: 20 } };
    assert.match(await site.refusal(zip([entry])), /share their bytes/);
  });
});

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { build } from 'esbuild';
import { bundle } from './bundle.ts';
import { describeVersion } from './deployment-digest.ts';
import { zipOf } from './zip.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-bundle-'));
});
after(() => rm(folder, { recursive: true }));

/** Reads a zip by its central directory, as programs that unpack do. */
function unzip(zip: Uint8Array): Map<string, { content: string; mode: number }> {
  const view = Buffer.from(zip);
  const end = view.lastIndexOf('PK\u0005\u0006');
  const files = new Map<string, { content: string; mode: number }>();
  let place = view.readUInt32LE(end + 16);
  for (let count = view.readUInt16LE(end + 10); count > 0; count -= 1) {
    assert.equal(view.readUInt32LE(place), 0x02014b50);
    const packed = view.readUInt32LE(place + 20);
    const nameLength = view.readUInt16LE(place + 28);
    const local = view.readUInt32LE(place + 42);
    const name = view.toString('utf8', place + 46, place + 46 + nameLength);
    assert.equal(view.readUInt32LE(local), 0x04034b50);
    const start = local + 30 + view.readUInt16LE(local + 26) + view.readUInt16LE(local + 28);
    const content = inflateRawSync(view.subarray(start, start + packed)).toString('utf8');
    files.set(name, { content, mode: view.readUInt32LE(place + 38) >>> 16 });
    place += 46 + nameLength;
  }
  return files;
}

describe('a zip', () => {
  it('has the files with their names and modes', () => {
    const files = unzip(
      zipOf([
        { name: 'a/b.txt', content: Buffer.from('hello') },
        { name: '日本', content: Buffer.from(''), executable: true },
      ]),
    );
    assert.deepEqual(files.get('a/b.txt'), { content: 'hello', mode: 0o100644 });
    assert.deepEqual(files.get('日本'), { content: '', mode: 0o100755 });
  });

  it('is the same for the same files', () => {
    const files = [{ name: 'x', content: Buffer.from('y'.repeat(1000)) }];
    assert.deepEqual(zipOf(files), zipOf(files));
  });
});

describe('a bundle', () => {
  it('holds a file of TypeScript with all it imports, in one module that runs', async () => {
    await writeFile(join(folder, 'part.ts'), 'export const by: number = 2;\n');
    await writeFile(
      join(folder, 'task.ts'),
      "import { streamHandler } from '@millrace/runner';\nimport { by } from './part.ts';\nexport const handler = streamHandler<number>(() => {});\nexport const twice = (n: number) => n * by;\n",
    );
    const made = await bundle(join(folder, 'task.ts'));
    assert.equal(made.handler, 'index.handler');
    assert.deepEqual(made.digest, (await bundle(join(folder, 'task.ts'))).digest);
    const own = made.sources.filter((source) => source.startsWith(folder));
    assert.deepEqual(own.toSorted(), [join(folder, 'part.ts'), join(folder, 'task.ts')]);
    const content = unzip(made.zip).get('index.mjs')?.content ?? '';
    await writeFile(join(folder, 'index.mjs'), content);
    const { twice } = await import(pathToFileURL(join(folder, 'index.mjs')).href);
    assert.equal(twice(21), 42);
    assert.ok(!content.includes(folder), 'nothing of this machine is in it');
  });

  it('says where the code is wrong', async () => {
    await writeFile(join(folder, 'bad.ts'), 'const a = 1;\nconst b = ;\n');
    const made = bundle(join(folder, 'bad.ts'), { directory: folder });
    await assert.rejects(made, /cannot be bundled\.\nbad\.ts:2:11: Unexpected/);
    await mkdir(join(folder, 'tasks'));
    await writeFile(join(folder, 'tasks/lost.ts'), "const é = 'ü'; import 'nowhere';\n");
    const lost = (directory: string) => bundle(join(folder, 'tasks/lost.ts'), { directory });
    await assert.rejects(lost(folder), /\ntasks\/lost\.ts:1:23: Could not resolve "nowhere"/);
    await assert.rejects(lost(join(folder, 'other')), /\n\.\.\/tasks\/lost\.ts:1:23: Could not/);
    await assert.rejects(bundle(join(folder, 'none.ts')), /no code at/);
  });

  it('packs a folder as it is, links to files too, and refuses links to folders', async () => {
    const packed = join(folder, 'packed');
    await mkdir(join(packed, 'lib'), { recursive: true });
    await writeFile(join(packed, 'main.py'), 'print(1)');
    await writeFile(join(packed, 'lib/run'), '#!/bin/sh', { mode: 0o755 });
    await symlink('main.py', join(packed, 'linked.py'));
    const files = unzip((await bundle(packed)).zip);
    assert.deepEqual([...files.keys()], ['lib/run', 'linked.py', 'main.py']);
    assert.equal(files.get('lib/run')?.mode, 0o100755);
    assert.equal(files.get('linked.py')?.content, 'print(1)');
    await symlink('lib', join(packed, 'folder'));
    await assert.rejects(bundle(packed), /links to folders/);
    await mkdir(join(folder, 'empty'));
    await assert.rejects(bundle(join(folder, 'empty')), /is empty/);
  });

  it('is the one file itself where it is not for Node', async () => {
    await writeFile(join(folder, 'app.py'), 'def handler(event, context): return event');
    const python = await bundle(join(folder, 'app.py'), { runtime: 'PYTHON3' });
    assert.equal(python.handler, 'app.handler');
    assert.deepEqual([...unzip(python.zip).keys()], ['app.py']);
    await writeFile(join(folder, 'bootstrap'), '#!/bin/sh', { mode: 0o755 });
    const provided = await bundle(join(folder, 'bootstrap'), { runtime: 'PROVIDED' });
    assert.equal(unzip(provided.zip).get('bootstrap')?.mode, 0o100755);
  });

  it('has less than 20 kB of the library of tasks', async () => {
    const runner = fileURLToPath(import.meta.resolve('@millrace/runner'));
    const result = await build({
      stdin: {
        contents: `export { log, publish, publishMany, state, streamHandler, endpointHandler } from ${JSON.stringify(runner)};`,
        resolveDir: import.meta.dirname,
      },
      bundle: true,
      minify: true,
      treeShaking: true,
      platform: 'node',
      format: 'esm',
      write: false,
    });
    const bytes = result.outputFiles[0]?.contents.length ?? Number.POSITIVE_INFINITY;
    assert.ok(bytes < 20_000, `${bytes} bytes`);
    const demo = await readFile(join(import.meta.dirname, 'demo/task.ts'), 'utf8');
    assert.match(demo, /@millrace\/runner/);
  });
});

describe('the description of a version', () => {
  const made = { digest: 'abc' };
  const task = { code: 'a.ts', environment: { A: '1', B: '2' }, endpoint: { isPublic: true } };

  it('changes with every setting, however deep', () => {
    const texts = [
      task,
      { ...task, environment: { A: '1', B: '3' } },
      { ...task, environment: { A: '1' } },
      { ...task, endpoint: { isPublic: false } },
      { ...task, input: ['x'] },
      { ...task, handler: 'other.handler' },
    ].map((each) => describeVersion(each, made));
    assert.equal(new Set(texts).size, texts.length);
    assert.notEqual(describeVersion(task, { digest: 'abd' }), texts[0]);
  });

  it('does not change with the order of fields or the place of the code', () => {
    const other = { endpoint: { isPublic: true }, environment: { B: '2', A: '1' }, code: 'b.ts' };
    assert.equal(describeVersion(task, made), describeVersion(other, made));
    const long = describeVersion({ ...task, description: 'x'.repeat(5_000) }, made);
    assert.ok(long.length <= 1024);
  });
});

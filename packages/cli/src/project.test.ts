import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { buildContract } from '@millrace/contract';
import { findProject, requireProject } from './project.ts';
import { runtimes } from './runtimes.ts';
import { watchFiles } from './watch.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-project-'));
});
after(() => rm(folder, { recursive: true }));

const write = (text: string) => writeFile(join(folder, 'millrace.json'), text);

describe('a project', () => {
  it('is found from any folder below it', async () => {
    assert.equal(await findProject(folder), undefined);
    await assert.rejects(requireProject(folder), /There is no millrace.json here/);
    await mkdir(join(folder, 'a/b'), { recursive: true });
    await writeFile(join(folder, 'clicks.json'), '{"type":"object"}');
    await write(
      JSON.stringify({
        $schema: './x.json',
        topics: { clicks: { batch: {} } },
        schemas: { clicks: 'clicks.json', other: { type: 'object', properties: {} } },
        tasks: { enrich: { code: 'a.ts', input: ['clicks'], memoryMb: 128 } },
      }),
    );
    const project = await requireProject(join(folder, 'a/b'));
    assert.equal(project.directory, folder);
    assert.deepEqual(project.files, [join(folder, 'millrace.json'), join(folder, 'clicks.json')]);
    assert.deepEqual(project.schemas.clicks, { type: 'object' });
    assert.deepEqual(project.tasks.enrich, { code: 'a.ts', input: ['clicks'], memoryMb: 128 });
  });

  it('names the runtimes that the service has', () => {
    const { runtime } = buildContract().types.DeployRequest.properties;
    assert.deepEqual(runtimes.toSorted(), JSON.parse(JSON.stringify(runtime)).enum.toSorted());
  });

  it('may name files anywhere', async () => {
    const schema = join(folder, 'clicks.json');
    await writeFile(schema, '{"type":"object"}');
    await write(JSON.stringify({ schemas: { clicks: schema } }));
    assert.deepEqual((await requireProject(folder)).schemas.clicks, { type: 'object' });
  });

  it('is refused with the place where it is wrong', async () => {
    const wrong = [
      ['{', /is not JSON/],
      ['[]', /is not a JSON object/],
      ['{"topic":{}}', /"topic" is not a field/],
      ['{"topics":[]}', /"topics" is not an object/],
      ['{"topics":{"a":1}}', /the topic "a" is not an object/],
      ['{"tasks":{"a":{}}}', /does not say where its "code" is/],
      ['{"tasks":{"a":{"code":"x","colour":1}}}', /field "colour" that is not known/],
      ['{"tasks":{"a":{"code":"x","runtime":"PERL"}}}', /"runtime" of the task "a" is one of NODEJS20_X, /],
      ['{"tasks":{"a":{"code":"x","input":"y"}}}', /"input" of the task "a" is a list/],
      ['{"schemas":{"a":"none.json"}}', /is not at/],
      ['{"schemas":{"a":1}}', /an object or a file/],
    ] as const;
    for (const [text, reason] of wrong) {
      await write(text);
      await assert.rejects(requireProject(folder), reason, text);
    }
  });
});

describe('watching files', () => {
  it('notices a file that is saved, also when a new one takes its place, and no others', async () => {
    const [one, two, other] = ['one', 'two', 'other'].map((name) => join(folder, name));
    assert.ok(one !== undefined && two !== undefined && other !== undefined);
    for (const path of [one, two, other]) await writeFile(path, '0');
    const end = new AbortController();
    let calls = 0;
    let wake = () => {};
    const called = () =>
      new Promise<void>((resolve, reject) => {
        wake = resolve;
        setTimeout(() => reject(new Error('not noticed')), 10_000).unref();
      });
    const saved = async () => {
      calls += 1;
      wake();
      return [one, two];
    };
    const watching = watchFiles([one], saved, end.signal);
    await writeFile(other, '1');
    await writeFile(two, '1');
    let next = called();
    await writeFile(one, '1');
    await next;
    assert.equal(calls, 1);
    next = called();
    await writeFile(`${two}.new`, '2');
    await rename(`${two}.new`, two);
    await next;
    assert.equal(calls, 2);
    end.abort();
    await watching;
  });

  it('notices a save that comes while the files are first read', async () => {
    const file = join(folder, 'early');
    const since = Date.now();
    await writeFile(file, 'saved before anybody watches');
    const end = new AbortController();
    const noticed = Promise.withResolvers<void>();
    const limit = setTimeout(() => noticed.reject(new Error('not noticed')), 10_000);
    const saved = async () => {
      noticed.resolve();
      return [file];
    };
    const watching = watchFiles([file], saved, end.signal, since);
    await noticed.promise;
    clearTimeout(limit);
    end.abort();
    await watching;
  });
});

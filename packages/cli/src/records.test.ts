import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { CommandError } from './command.ts';
import { csvLines } from './csv.ts';
import { jsonLines, mostLineBytes, openRecords, type RecordOptions } from './records.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-records-'));
});
after(() => rm(folder, { recursive: true }));

async function* pieces(text: string, size: number): AsyncGenerator<string, void> {
  for (let start = 0; start < text.length; start += size) yield text.slice(start, start + size);
}

/** The same whatever the pieces are in which the text comes. */
async function csv(text: string, options: { delimiter?: string; asText?: boolean } = {}): Promise<unknown[]> {
  const { delimiter = ',', asText = false } = options;
  const read = async (size: number) =>
    (await Array.fromAsync(csvLines(pieces(text, size), { delimiter, asText }))).map((line) =>
      JSON.parse(line),
    );
  const whole = await read(text.length + 1);
  for (const size of [1, 2, 7]) assert.deepEqual(await read(size), whole);
  return whole;
}

async function file(name: string, content: string | Uint8Array, more: Partial<RecordOptions> = {}) {
  const path = join(folder, name);
  await writeFile(path, content);
  const source = openRecords(path, { signal: new AbortController().signal, ...more });
  const lines = await Array.fromAsync(source.lines());
  return { lines, bytes: source.bytes() };
}

describe('CSV', () => {
  it('becomes objects with the names of the first row', async () => {
    assert.deepEqual(await csv('user,n,ok\nada,1,true\r\nbo,2.5,false\n'), [
      { user: 'ada', n: 1, ok: true },
      { user: 'bo', n: 2.5, ok: false },
    ]);
  });

  it('may have quotes, commas, line breaks and a byte order mark', async () => {
    assert.deepEqual(await csv('\ufeff"a",b\n"x, ""y""\r\nz",""\n"",q'), [{ a: 'x, "y"\r\nz' }, { b: 'q' }]);
    assert.deepEqual(await csv('a,b\nit"s,"\r"\r\n'), [{ a: 'it"s', b: '\r' }]);
    assert.deepEqual(await csv('a\n"last"'), [{ a: 'last' }]);
  });

  it('leaves out what is empty, and rows that are', async () => {
    assert.deepEqual(await csv('a,b\n\n1,\n,2\n3\n'), [{ a: 1 }, { b: 2 }, { a: 3 }]);
    assert.deepEqual(await csv(''), []);
    assert.deepEqual(await csv('a,b\n'), []);
  });

  it('keeps as texts what would be another number', async () => {
    const kept = [
      '007',
      '+1',
      '1e400',
      '12345678901234567890',
      '0.12345678901234567',
      '0x10',
      ' 1',
      '1_000',
      '-',
      '.5',
    ];
    const rows = await csv(`a\n${kept.join('\n')}`);
    assert.deepEqual(
      rows,
      kept.map((a) => ({ a })),
    );
    assert.deepEqual(await csv('a\n-0.5\n1e3\n0'), [{ a: -0.5 }, { a: 1000 }, { a: 0 }]);
    assert.deepEqual(await csv('a\n1.10\ntrue', { asText: true }), [{ a: '1.10' }, { a: 'true' }]);
  });

  it('may have another delimiter', async () => {
    assert.deepEqual(await csv('a;b\n1,5;2', { delimiter: ';' }), [{ a: '1,5', b: 2 }]);
    assert.deepEqual((await file('t.tsv', 'a\tb\n1\tx\n')).lines, ['{"a":1,"b":"x"}']);
  });

  it('is refused with the row where it is none', async () => {
    const refused = [
      ['a,b\n1,2,3', /Row 2 has 3 fields/],
      ['a,a\n1,2', /"a" twice/],
      ['a,,b\n1,2,3', /Field 2 of the first row/],
      ['a\n"x', /ends inside a quoted field/],
      ['a\n"x"y', /Row 2 has text after a quote/],
    ] as const;
    for (const [text, reason] of refused) await assert.rejects(csv(text), reason);
  });

  it('has names that no object has by itself', async () => {
    assert.deepEqual(await csv('__proto__,constructor\n1,2'), [
      JSON.parse('{"__proto__":1,"constructor":2}'),
    ]);
  });
});

describe('records of a file', () => {
  it('are its lines, without those that are blank', async () => {
    const { lines, bytes } = await file('a.ndjson', '\ufeff{"a":1}\r\n\n  \n{"b":"日本"}');
    assert.deepEqual(lines, ['{"a":1}', '{"b":"日本"}']);
    assert.ok(bytes > 20);
  });

  it('may be compressed', async () => {
    assert.deepEqual((await file('a.csv.gz', gzipSync('a\n1\n2\n'))).lines, ['{"a":1}', '{"a":2}']);
    await assert.rejects(
      file('b.ndjson.gz', gzipSync('{"a":1}\n'.repeat(999)).subarray(0, 40)),
      CommandError,
    );
    await assert.rejects(file('c.ndjson.gz', 'no gzip'), /cannot be read/);
  });

  it('are refused where they are no UTF-8, or where there is no file', async () => {
    await assert.rejects(file('d.ndjson', Buffer.from([0x22, 0xff, 0x22, 0x0a])), /not UTF-8/);
    await assert.rejects(file('e.ndjson', Buffer.from('"ab\u00e9', 'latin1')), /not UTF-8/);
    const missing = openRecords(join(folder, 'none'), { signal: new AbortController().signal });
    await assert.rejects(Array.fromAsync(missing.lines()), /cannot be read: ENOENT/);
  });

  it('do not take more memory than a line may have', async () => {
    async function* endless(): AsyncGenerator<string, void> {
      for (let index = 0; index < 100; index += 1) yield 'x'.repeat(mostLineBytes / 8);
    }
    await assert.rejects(Array.fromAsync(jsonLines(endless())), /A line is longer/);
    const quoted = csvLines(
      (async function* () {
        yield 'a\n"';
        yield* endless();
      })(),
      { delimiter: ',', asText: false },
    );
    await assert.rejects(Array.fromAsync(quoted), /a quote missing/);
  });

  it('are the same in whatever pieces they come, and end when they are told to', async () => {
    const text = Array.from({ length: 3_000 }, (_value, index) => `{"n":${index},"t":"日本"}`).join('\n');
    const { lines } = await file('many.ndjson', text);
    const digest = (value: string) => createHash('sha256').update(value).digest('hex');
    assert.equal(digest(lines.join('\n')), digest(text));
    const end = new AbortController();
    const source = openRecords(join(folder, 'many.ndjson'), { signal: end.signal });
    const reading = source.lines();
    await reading.next();
    end.abort(new Error('enough'));
    await assert.rejects(Array.fromAsync(reading), /enough/);
  });
});

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { quoteLiteral } from './columns.ts';
import { emptyTable, query, record, valuesOf, Workshop } from './converter/reading.fixture.ts';
import { ConverterError } from './converter.ts';

const bounded = { timeout: 60_000 };

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) assert.fail(`${what} did not happen`);
    await setImmediate();
  }
}

async function inWorkshop(work: (workshop: Workshop) => Promise<void>, options = {}): Promise<void> {
  const workshop = new Workshop(options);
  try {
    await work(workshop);
  } finally {
    await workshop.close();
  }
}

function killConverter(workshop: Workshop): void {
  const { processId } = workshop.converter;
  assert.ok(processId !== undefined);
  process.kill(processId, 'SIGKILL');
}

const many = Array.from({ length: 20_000 }, (_, index) =>
  record(`{"a":${index},"text":"${'x'.repeat(200)}"}`, index),
);

describe('the life of a converter', () => {
  it('is started when there is something to do and ends when there is not', bounded, async () => {
    await inWorkshop(
      async (workshop) => {
        const { converter, directory } = workshop;
        assert.equal(converter.processId, undefined);
        const job = await converter.beginWrite({ ...emptyTable, open: true, directory });
        const first = converter.processId;
        assert.ok(first !== undefined);
        await job.seal();
        await until('the end of the process', () => converter.processId === undefined);
        const again = await converter.beginWrite({ ...emptyTable, open: true, directory });
        assert.notEqual(converter.processId, first);
        await again.seal();
      },
      { idleMilliseconds: 50 },
    );
  });

  it('sees nothing of the environment', bounded, async () => {
    process.env.MILLRACE_TEST_SECRET = 'secret';
    await inWorkshop(async (workshop) => {
      await workshop.write(['{"a":1}']);
      const environment = readFileSync(`/proc/${workshop.converter.processId}/environ`, 'utf8');
      assert.doesNotMatch(environment, /secret|PATH|HOME/);
    });
    delete process.env.MILLRACE_TEST_SECRET;
  });

  it('fails a job whose process is killed while records are sent, and works on', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const directory = workshop.newDirectory();
      const job = await workshop.converter.beginWrite({ ...emptyTable, open: true, directory });
      await job.send(many);
      killConverter(workshop);
      await assert.rejects(
        async () => {
          for (let round = 0; round < 1000; round++) await job.send(many);
        },
        (error) => error instanceof ConverterError && /The converter ended \(SIGKILL\)/.test(error.message),
      );
      await assert.rejects(job.seal(), ConverterError);
      assert.deepEqual(readdirSync(directory), []);
      const outcome = await workshop.write(['{"a":1}']);
      assert.deepEqual(await valuesOf(outcome, 'a'), ['1']);
    });
  });

  it('fails a job whose process is killed while it is sealed, and works on', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const directory = workshop.newDirectory();
      const job = await workshop.converter.beginWrite({ ...emptyTable, open: true, directory });
      for (let round = 0; round < 5; round++) await job.send(many);
      const waiting = workshop.write(['{"a":1}']);
      const sealed = job.seal();
      killConverter(workshop);
      await assert.rejects(
        sealed,
        (error) => error instanceof ConverterError && /SIGKILL/.test(error.message),
      );
      assert.ok(!existsSync(join(directory, 'spool')));
      assert.deepEqual(await valuesOf(await waiting, 'a'), ['1']);
    });
  });

  it('gives up a job when its signal says so, whatever it is at', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const begin = (signal: AbortSignal) =>
        workshop.converter.beginWrite(
          { ...emptyTable, open: true, directory: workshop.newDirectory() },
          signal,
        );
      await assert.rejects(begin(AbortSignal.abort()), { name: 'AbortError' });

      const sending = new AbortController();
      const first = await begin(sending.signal);
      const queued = new AbortController();
      const second = begin(queued.signal);
      queued.abort();
      await assert.rejects(second, { name: 'AbortError' });
      await first.send(many);
      sending.abort();
      await assert.rejects(first.send(many), { name: 'AbortError' });

      const sealing = new AbortController();
      const third = await begin(sealing.signal);
      await third.send(many);
      const sealed = third.seal();
      sealing.abort();
      await assert.rejects(sealed, { name: 'AbortError' });

      const fourth = await begin(new AbortController().signal);
      await fourth.send(many);
      await fourth.cancel();
      await assert.rejects(fourth.seal(), ConverterError);
      const outcome = await workshop.write(['{"a":1}']);
      assert.equal(outcome.files[0]?.rows, 1);
    });
  });

  it('refuses work when it is closed, and ends what is under way', bounded, async () => {
    const workshop = new Workshop();
    const job = await workshop.converter.beginWrite({
      ...emptyTable,
      open: true,
      directory: workshop.newDirectory(),
    });
    const { processId } = workshop.converter;
    const waiting = workshop.write(['{"a":1}']);
    const closed = workshop.close();
    await assert.rejects(waiting, /closed/);
    await closed;
    await assert.rejects(job.seal(), ConverterError);
    assert.ok(!existsSync(`/proc/${processId}`));
    await assert.rejects(workshop.converter.survey({ files: [], samples: 1 }), /closed/);
  });

  it('ends a process that takes too long', bounded, async () => {
    await inWorkshop(
      async (workshop) => {
        const job = await workshop.converter.beginWrite({
          ...emptyTable,
          open: true,
          directory: workshop.newDirectory(),
        });
        const { processId } = workshop.converter;
        assert.ok(processId !== undefined);
        process.kill(processId, 'SIGSTOP');
        await assert.rejects(job.seal(), /did not answer within 3000 ms/);
        await workshop.write(['{"a":1}']);
      },
      { answerMilliseconds: 3000 },
    );
  });

  it('says why when it cannot write, and works on', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const job = await workshop.converter.beginWrite({
        ...emptyTable,
        open: true,
        directory: workshop.directory,
      });
      await job.send([record('{"a":1}', 0)]);
      await assert.rejects(
        workshop.converter
          .merge(
            {
              select: `SELECT 1 FROM read_parquet('/nowhere/x.parquet')`,
              columns: [],
              output: '/nowhere/y.parquet',
            },
            AbortSignal.timeout(50),
          )
          .finally(() => job.cancel()),
      );
      await assert.rejects(
        workshop.converter.merge({
          select: `SELECT content FROM read_text('/etc/hostname')`,
          columns: [],
          output: join(workshop.directory, 'x.parquet'),
        }),
        /Permission Error/,
      );
      await workshop.write(['{"a":1}']);
    });
  });
});

describe('merging and surveying', () => {
  it('merges files into one with the same ids', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const first = await workshop.write(['{"a":1,"l":[1]}', '{"a":"x"}']);
      const second = await workshop.write(['{"a":2,"b":"new"}'], first);
      const files = [...first.files, ...second.files].map(({ path }) => quoteLiteral(path));
      const select = `SELECT a, l, b, _key, _id, _ingested_at, _rescued FROM read_parquet([${files.join(', ')}], union_by_name = true)`;
      const output = join(workshop.newDirectory(), 'merged.parquet');
      const merged = await workshop.converter.merge({ select, columns: second.columns, output });
      const [{ minIngestedAt = 0 } = {}] = first.files;
      assert.deepEqual(merged, {
        rows: 3,
        bytes: merged.bytes,
        rescued: 1,
        minIngestedAt,
        maxIngestedAt: minIngestedAt + 1,
      });
      const ids = await query(
        `SELECT name, field_id FROM parquet_schema('${output}') WHERE field_id IS NOT NULL ORDER BY field_id`,
      );
      assert.deepEqual(
        ids.map(({ name, field_id }) => `${field_id} ${name}`),
        ['1 _key', '2 _id', '3 _ingested_at', '4 _rescued', '16 a', '17 l', '18 element', '19 b'],
      );
    });
  });

  it('surveys the columns of files by id, and samples what was rescued', bounded, async () => {
    await inWorkshop(async (workshop) => {
      const first = await workshop.write([
        '{"a":5,"s":{"x":"m","y":null}}',
        '{"a":-10,"s":{"x":"b","y":true}}',
        '{"a":"no"}',
      ]);
      const second = await workshop.write(['{"a":100,"b":[1,2]}', '{"a":"no more"}'], first);
      const survey = await workshop.converter.survey({
        files: [...first.files, ...second.files].map(({ path }) => path),
        samples: 10,
      });
      assert.equal(survey.rows, 5);
      const ids = Object.fromEntries(survey.columns.map(({ id, ...column }) => [id, column]));
      assert.deepEqual(ids[16], { values: 5, nulls: 2, minimum: '-10', maximum: '100' });
      assert.deepEqual(ids[18], { values: 5, nulls: 3, minimum: 'b', maximum: 'm' });
      assert.deepEqual(ids[1]?.nulls, 0);
      assert.deepEqual(survey.rescued, ['{"a":"no"}', '{"a":"no more"}']);
      assert.deepEqual(await workshop.converter.survey({ files: [], samples: 1 }), {
        rows: 0,
        columns: [],
        rescued: [],
      });
    });
  });
});

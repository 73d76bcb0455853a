import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import type { Bubblewrap } from '../../platform/bubblewrap.ts';
import { silentLog } from '../../platform/log.ts';
import { systemRandom } from '../../platform/random.ts';
import type { Failure, QueryEngine, QueryJob, Success } from '../engine.ts';
import { openDuckdbEngine } from './duckdb-engine.ts';

/** What the engine must do with a sandbox and without one. */
export function duckdbEngineSuite(name: string, bubblewrap: Bubblewrap | 'none'): void {
  describe(`the DuckDB engine ${name}`, () => {
    let directory: string;
    let engine: QueryEngine;
    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'millrace-engine-'));
      const connection = await (await DuckDBInstance.create()).connect();
      for (const organization of ['acme', 'other']) {
        await mkdir(join(directory, organization));
        const path = join(directory, organization, 'x.parquet');
        await connection.run(`copy (select '${organization}' as whose) to '${path}' (format parquet)`);
      }
      connection.closeSync();
      engine = await openDuckdbEngine({
        scratch: join(directory, 'scratch'),
        limits: {
          memoryBytes: 128 * 1024 * 1024,
          threads: 2,
          temporaryBytes: 256 * 1024 * 1024,
          resultBytes: 64 * 1024 * 1024,
          milliseconds: 30_000,
        },
        random: systemRandom,
        log: silentLog,
        bubblewrap,
      });
    });
    after(async () => {
      await engine.close();
      await rm(directory, { recursive: true, force: true });
    });

    function job(sql: string, organization = 'acme', more: Partial<QueryJob> = {}): QueryJob {
      return {
        organization: { id: organization, name: organization },
        sql,
        directory: join(directory, organization),
        tables: [
          {
            name: 'clicks',
            columns: [{ name: 'whose', type: 'varchar' }],
            scan: async () => "select * from read_parquet(['x.parquet'])",
          },
        ],
        namesIngestedAt: false,
        ...more,
      };
    }

    function run(sql: string, organization?: string, more?: Partial<QueryJob>): Promise<Success | Failure> {
      return engine.run(job(sql, organization, more), new AbortController().signal);
    }

    /** The first value of the result. */
    async function value(sql: string, organization?: string, more?: Partial<QueryJob>): Promise<string> {
      const outcome = await run(sql, organization, more);
      assert.ok(outcome.kind === 'succeeded', outcome.kind === 'failed' ? outcome.message : '');
      const [line = ''] = (await readFile(outcome.rowsPath, 'utf8')).split('\n');
      await outcome.discard();
      return JSON.parse(line).r[0];
    }

    it('gives each organization its own files', async () => {
      assert.equal(await value('select whose from clicks'), 'acme');
      assert.equal(await value('select whose from clicks', 'other'), 'other');
      assert.equal(await value('select whose from clicks'), 'acme');
    });

    it('refuses to reach or to change anything, even what the parser would have refused before', async () => {
      for (const sql of [
        "select * from read_text('/etc/passwd')",
        "select * from read_text('/proc/self/environ')",
        `select * from read_parquet('${directory}/other/x.parquet')`,
        "select * from read_parquet('../other/x.parquet')",
        "select * from read_parquet('/lake/../scratch/x')",
        "select * from '../other/x.parquet'",
        "select * from glob('/*')",
        "select * from glob('../*')",
        `copy (select 1) to '${directory}/acme/written.csv'`,
        "copy (select 1) to 'written.csv'",
        "copy (select 1) to '/scratch/written.csv'",
        `attach '${directory}/acme/new.db' as x`,
        "attach ':memory:' as x",
        'install httpfs',
        'load httpfs',
        'set enable_external_access = true',
        'set lock_configuration = false',
        "set allowed_directories = ['/']",
        'reset memory_limit',
        "pragma memory_limit='10GB'",
        'create table x as select 1',
        'create macro f() as 1',
        'drop view clicks',
        'call pragma_version()',
        "explain analyze copy (select 1) to 'written.csv'",
        'select 1; select 2',
        'prepare p as select 1',
        "export database 'x'",
      ]) {
        const outcome = await run(sql);
        if (outcome.kind === 'succeeded') await outcome.discard();
        assert.equal(outcome.kind, 'failed', sql);
      }
      assert.deepEqual(await readdir(join(directory, 'acme')), ['x.parquet']);
      assert.equal(await value('select whose from clicks'), 'acme');
    });

    it('keeps its process for the next query, and gives it to nobody else', async () => {
      assert.equal(await value('select 1'), '1');
      const [mine] = processes(join(directory, 'scratch'), 'acme');
      assert.equal(await value('select 2'), '2');
      assert.deepEqual(processes(join(directory, 'scratch'), 'acme'), [mine]);
      await value('select 3', 'other');
      assert.ok(!processes(join(directory, 'scratch'), 'other').includes(mine ?? 0));
      const environment = readFileSync(`/proc/${mine}/environ`, 'latin1');
      assert.doesNotMatch(environment, /PATH=|HOME=|MILLRACE/);
    });

    it('spills to disk what does not fit its memory', async () => {
      const sorted = 'select max(i) from (select i from range(6000000) t(i) order by hash(i) offset 1)';
      assert.match(await value(sorted), /^599999\d$/);
    });

    it('sees files that come after its process, also when the whole folder is new', async () => {
      assert.equal(await value('select count(*) from clicks'), '1');
      const folder = join(directory, 'acme');
      const file = await readFile(join(folder, 'x.parquet'));
      await writeFile(join(folder, 'y.parquet'), file);
      const scan = async () => "select * from read_parquet(['x.parquet', 'y.parquet'])";
      const tables = [{ name: 'clicks', columns: [], scan }];
      assert.equal(await value('select count(*) from clicks', 'acme', { tables }), '2');
      await rm(folder, { recursive: true });
      await mkdir(folder);
      await writeFile(join(folder, 'x.parquet'), file);
      assert.equal(await value('select count(*) from clicks'), '1');
    });

    it('reads state where it is given', async () => {
      const writeState = (path: string) =>
        writeFile(
          path,
          '{"key_parts":["a"],"merged_key":"a","attributes":{"n":1.5},"version":3,"expires_at":null,"updated_at":0}\n',
        );
      const sql =
        "select attributes->>'n' || version || updated_at || coalesce(expires_at::varchar, '-') from _state";
      assert.equal(await value(sql, 'acme', { writeState }), '1.531970-01-01 00:00:00-');
    });

    it('leaves nothing behind when it is closed', async () => {
      await engine.close();
      const left = existsSync(join(directory, 'scratch')) ? await readdir(join(directory, 'scratch')) : [];
      assert.deepEqual(left, ['empty']);
    });
  });
}

/** The processes that run the queries of an organization of this engine. */
function processes(scratch: string, organization: string): number[] {
  const found: number[] = [];
  const left = [process.pid];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    try {
      const command = readFileSync(`/proc/${id}/cmdline`, 'utf8');
      const isRunner = /^[^\0]*node\0/.test(command) && command.includes(`"databaseName":"${organization}"`);
      if (isRunner && (command.includes(scratch) || command.includes('"/scratch"'))) found.push(id);
      const children = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').split(' ');
      left.push(...children.filter(Boolean).map(Number));
    } catch {
      // It ended while it was looked at.
    }
  }
  return found;
}

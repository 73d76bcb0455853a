import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ingestedRanges } from './ranges.ts';
import { Planner } from './worker/planner.ts';

describe('the part of a table that a statement reads', () => {
  const planner = new Planner();
  const columns = [
    { name: 'n', type: 'bigint' },
    { name: 's', type: 'varchar' },
    { name: '_ingested_at', type: 'timestamp' },
  ];
  const tables = ['clicks', 'Odd "name"'].map((name) => ({ name, columns }));
  const at = (text: string) => Date.parse(`${text}Z`);
  const minute = 60_000;

  async function rangesOf(sql: string) {
    const plan = await planner.plan({ kind: 'plan', id: 1, sql, tables });
    assert.notEqual(plan, '', sql);
    return ingestedRanges(plan);
  }
  before(() => rangesOf('SELECT 1'));

  it('is what the filters on _ingested_at leave, with a minute to spare', async () => {
    const day = { from: at('2026-01-02T00:00') - minute, to: at('2026-01-03T00:00') + minute };
    for (const [where, range] of [
      ["_ingested_at >= '2026-01-02' AND _ingested_at < '2026-01-03'", day],
      ["_ingested_at BETWEEN '2026-01-02' AND '2026-01-03' AND n > 3 AND s = 'x AND y'", day],
      ["_ingested_at::DATE = '2026-01-02'", day],
      ["date_trunc('day', _ingested_at) = '2026-01-02'", day],
      ["_ingested_at > '2026-01-02'", { from: day.from }],
      ["_ingested_at <= '2026-01-03'", { to: day.to }],
      [
        "_ingested_at = '2026-01-02 03:04:05.678'",
        { from: at('2026-01-02T03:04:05.678') - minute, to: at('2026-01-02T03:04:05.678') + minute },
      ],
    ] as const) {
      assert.deepEqual((await rangesOf(`SELECT * FROM clicks WHERE ${where}`)).get('clicks'), range, where);
    }
    const hour = 3_600_000;
    for (const [where, hasEnd] of [
      ['_ingested_at > now() - INTERVAL 1 HOUR', false],
      ['_ingested_at > now() - INTERVAL 1 HOUR AND _ingested_at < now()', true],
    ] as const) {
      const recent = (await rangesOf(`SELECT * FROM clicks WHERE ${where}`)).get('clicks');
      assert.ok(Math.abs((recent?.from ?? 0) - (Date.now() - hour - minute)) < 10_000, where);
      assert.equal(recent?.to !== undefined, hasEnd, where);
    }
  });

  it('is the whole table where that is not certain', async () => {
    for (const sql of [
      'SELECT * FROM clicks',
      "SELECT * FROM clicks WHERE _ingested_at > '2026-01-02' OR n = 1",
      "SELECT * FROM clicks WHERE _ingested_at > '2026-01-02' UNION ALL SELECT * FROM clicks",
      "SELECT * FROM clicks a LEFT JOIN clicks b ON a.n = b.n AND a._ingested_at > '2026-01-02'",
      "SELECT * FROM clicks WHERE s = '_ingested_at>''2026-01-02 00:00:00''::TIMESTAMP'",
      "SELECT * FROM clicks WHERE s = 'x\n_ingested_at>''2026-01-02 00:00:00''::TIMESTAMP'",
      "SELECT * FROM clicks WHERE NOT (_ingested_at > '2026-01-02' AND n = 1)",
      "SELECT * FROM clicks WHERE NOT (_ingested_at >= '2026-01-02' AND _ingested_at < '2026-01-03' AND _ingested_at <> '2026-01-02 12:00')",
      "SELECT * FROM clicks WHERE CASE WHEN _ingested_at > '2026-01-02' AND _ingested_at < '2026-01-03' AND _ingested_at <> '2026-01-04' THEN false ELSE true END",
      "SELECT * FROM clicks WHERE coalesce(_ingested_at > '2026-01-02' AND _ingested_at < '2026-01-03' AND _ingested_at <> '2026-01-04', true) = false",
      'SELECT * FROM clicks WHERE _ingested_at > (SELECT max(_ingested_at) FROM clicks)',
    ]) {
      assert.deepEqual([...(await rangesOf(sql))], [], sql);
    }
  });

  it('is found when only the first rows are asked for', async () => {
    const sql =
      "SELECT * FROM clicks WHERE _ingested_at > '2026-01-02' AND n > 1 ORDER BY _ingested_at DESC LIMIT 3";
    assert.deepEqual((await rangesOf(sql)).get('clicks'), { from: at('2026-01-02T00:00') - minute });
  });

  it('is told for each table, as far as all its uses go', async () => {
    const ranges = await rangesOf(
      `SELECT * FROM clicks a JOIN clicks b USING (n) JOIN "Odd ""name""" o USING (n)
       WHERE a._ingested_at > '2026-01-02' AND b._ingested_at > '2026-01-01' AND b._ingested_at < '2026-01-05' AND o._ingested_at < '2026-01-03'`,
    );
    assert.deepEqual(ranges.get('clicks'), { from: at('2026-01-01T00:00') - minute });
    assert.deepEqual(ranges.get('Odd "name"'), { to: at('2026-01-03T00:00') + minute });
  });
});

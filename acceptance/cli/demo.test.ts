import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newPlace, run } from './terminal.ts';

const events = 20_000;

describe('the tour', { timeout: 600_000 }, () => {
  it('shows figures that agree with each other, within a minute', async () => {
    const place = await newPlace({ MILLRACE_DATABASE_URL: 'postgres://not.for.the.tour/' });
    try {
      const { code, stdout, stderr } = await run(place, ['demo', '--events', String(events), '--json']);
      assert.equal(code, 0, stderr);
      const { published, state, answers, files } = JSON.parse(stdout);
      assert.equal(published, events);
      const [visits, hours, pages, purchases, agreement] = answers.map(
        (answer: { rows: (string | null)[][] }) => answer.rows,
      );
      const sum = (rows: string[][], column: number) =>
        rows.reduce((total, row) => total + Number(row[column]), 0);
      assert.equal(Number(visits[0][0]), events);
      assert.equal(sum(hours, 1), events);
      assert.equal(sum(pages, 1), events);
      const counted = Object.values<number>(state).reduce((total, count) => total + count, 0);
      assert.equal(counted, events);
      for (const [country, inFiles, inState] of agreement) {
        assert.equal(inFiles, inState, country);
        assert.equal(Number(inState), state[country], country);
      }
      assert.equal(agreement.length, Object.keys(state).length);
      const sold = sum(purchases, 1);
      assert.ok(sold > events * 0.03 && sold < events * 0.05, String(sold));
      assert.ok(files.length > 0);
      assert.match(stderr, /That took \d+ s\./);
      assert.match(stderr, /millrace serve/);
    } finally {
      await place.remove();
    }
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { wellFormed } from './state-snapshot.ts';

it('halves of characters in the state are replaced, and nothing else is', () => {
  const text = (value: unknown) => JSON.stringify(value);
  assert.equal(wellFormed(text({ '\udc00': ['\ud800', 'a\ud83dz'] })), '{"\\ufffd":["\\ufffd","a\\ufffdz"]}');
  for (const json of [
    text({ plain: 1, emoji: '🎈', control: '\u0001', text: '\\ud800', quoted: '\\\\"\\ud800' }),
    '{"pair":"\\ud83c\\udf88"}',
    '{}',
  ]) {
    assert.equal(wellFormed(json), json);
  }
  assert.equal(wellFormed('"\\ud83c\\ud83c\\udf88"'), '"\\ufffd\\ud83c\\udf88"');
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isUtf8 } from './media-type.ts';

it('a content type is UTF-8 unless it says that it is something else', () => {
  const json = 'application/json';
  for (const type of [
    undefined,
    '',
    json,
    `${json};`,
    `${json}; charset=utf-8`,
    `${json};charset="UTF8"`,
    `${json}; Charset = us-ascii`,
    `${json}; profile=x`,
  ]) {
    assert.ok(isUtf8(type), String(type));
  }
  for (const type of [
    `${json}; charset=utf-16`,
    `${json};CHARSET="latin1"`,
    `${json}; profile=x; charset=utf-16le`,
    '; charset=utf-16',
  ]) {
    assert.ok(!isUtf8(type), type);
  }
});

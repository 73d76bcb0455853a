import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HeadReader } from './head.ts';

const line = 'POST /v1/x?a=1 HTTP/1.1\r\n';
const block = 'Host: a\r\nContent-Type: application/json\r\nX-Empty-Not: y \r\nContent-Length: 2\r\n\r\n';

describe('the head of a request', () => {
  it('is read when it is written in the usual way, whatever follows', () => {
    const reader = new HeadReader();
    const expected = {
      url: '/v1/x?a=1',
      headers: { host: 'a', 'content-type': 'application/json', 'x-empty-not': 'y', 'content-length': '2' },
      end: line.length + block.length,
    };
    for (const rest of ['', '{}', '{}POST /', '\r\n\r\n']) {
      assert.deepEqual(reader.read(Buffer.from(`${line}${block}${rest}`)), expected);
    }
  });

  it('is read anew when anything in it is different from the one before', () => {
    const reader = new HeadReader();
    const read = (bytes: string) => reader.read(Buffer.from(bytes));
    assert.equal(read(`${line}${block}`)?.headers['content-length'], '2');
    assert.equal(read(`${line}${block.replace(': 2', ': 3')}`)?.headers['content-length'], '3');
    assert.equal(read(`${line}${block.replace('Host: a', 'Host: b')}`)?.headers.host, 'b');
    assert.equal(read(`${line}Y: 1\r\n${block}`)?.headers.y, '1');
    const other = read(`POST /v1/other HTTP/1.1\r\n${block}{}`);
    assert.deepEqual([other?.url, other?.headers.y], ['/v1/other', undefined]);
  });

  it('is not longer than it may be, even when its headers are known', () => {
    const reader = new HeadReader();
    const long = block.replace('Host: a', `Host: ${'a'.repeat(9000)}`);
    const lineOf = (length: number) => line.replace('a=1', `a=${'1'.repeat(length)}`);
    for (const [length, isRead] of [
      [1, true],
      [1000, true],
      [9000, false],
    ] as const) {
      const head = reader.read(Buffer.from(`${lineOf(length)}${long}`));
      assert.equal(head !== undefined, isRead, String(length));
    }
  });

  it('is not remembered from one that was not read', () => {
    const reader = new HeadReader();
    const bad = `${block.slice(0, -2)}Content-Length: 3\r\n\r\n`;
    for (let time = 0; time < 2; time += 1)
      assert.equal(reader.read(Buffer.from(`${line}${bad}`)), undefined);
  });

  it('is left to others when it is not all there or unusual', () => {
    const whole = `${line}${block}`;
    for (let length = 0; length < whole.length; length += 1) {
      assert.equal(new HeadReader().read(Buffer.from(whole.slice(0, length))), undefined, String(length));
    }
    for (const header of [
      'Content-Length: 2',
      'Connection: close',
      'Upgrade: h2c',
      'TE: trailers',
      ' folded: 1',
      'no colon',
      'Name : 1',
      'Name: ',
      'Name: a\nb: c',
      'Name: a\rb',
      'Name: \u00e9',
      'Name: \0',
      '__proto__: x',
      `Name: ${'a'.repeat(17_000)}`,
      Array.from({ length: 64 }, (_value, index) => `n${index}: 1`).join('\r\n'),
    ]) {
      const text = `${line}${header}\r\n${block}`;
      assert.equal(new HeadReader().read(Buffer.from(text, 'latin1')), undefined, header.slice(0, 40));
    }
    for (const end of ['\rX', '\r\r', '\r ', '\n', '\r']) {
      const text = `${line.slice(0, -2)}${end}${block}`;
      assert.equal(new HeadReader().read(Buffer.from(text)), undefined, JSON.stringify(end));
    }
    for (const length of ['0', '00', '-1', '+1', '1.0', '1e1', '0x1', '', '9'.repeat(10)]) {
      const text = whole.replace('Content-Length: 2', `Content-Length: ${length}`);
      assert.equal(new HeadReader().read(Buffer.from(text)), undefined, length);
    }
  });
});

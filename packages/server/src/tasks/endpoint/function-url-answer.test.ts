import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fromFunctionUrlAnswer } from './function-url-answer.ts';

function answer(value: unknown) {
  const made = fromFunctionUrlAnswer(Buffer.from(JSON.stringify(value)));
  assert.ok('status' in made, JSON.stringify(made));
  return { status: made.status, headers: made.headers, body: Buffer.from(made.body).toString() };
}

function malformed(value: unknown): string {
  const made = fromFunctionUrlAnswer(Buffer.from(JSON.stringify(value)));
  assert.ok('malformed' in made, JSON.stringify(made));
  return made.malformed;
}

const json = ['content-type', 'application/json'];

describe('the answer of a handler', () => {
  it('is itself the body where it has no statusCode', () => {
    const values = [
      'Hello, world!',
      { message: 'Hello, world!' },
      { body: 'x', headers: { a: 'b' } },
      null,
      true,
      12.5,
      [],
      [{ statusCode: 404 }],
      '',
    ];
    for (const value of values) {
      assert.deepEqual(answer(value), { status: 200, headers: [json], body: JSON.stringify(value) });
    }
  });

  it('describes an answer where it has one', () => {
    assert.deepEqual(
      answer({
        statusCode: 201,
        headers: {
          'Content-Type': 'text/html',
          'My-Custom-Header': 'Custom Value',
          'X-Number': 5,
          'X-Flag': false,
        },
        body: '<p>größe</p>',
        cookies: ['Cookie_1=Value1; Expires=21 Oct 2021 07:48 GMT', 'Cookie_2=Value2; Max-Age=78000'],
        isBase64Encoded: false,
      }),
      {
        status: 201,
        headers: [
          ['content-type', 'text/html'],
          ['my-custom-header', 'Custom Value'],
          ['x-number', '5'],
          ['x-flag', 'false'],
          ['set-cookie', 'Cookie_1=Value1; Expires=21 Oct 2021 07:48 GMT'],
          ['set-cookie', 'Cookie_2=Value2; Max-Age=78000'],
        ],
        body: '<p>größe</p>',
      },
    );
    assert.deepEqual(answer({ statusCode: 200 }), { status: 200, headers: [json], body: '' });
    assert.deepEqual(
      answer({ statusCode: 200, headers: null, cookies: null, body: null, isBase64Encoded: null }),
      {
        status: 200,
        headers: [json],
        body: '',
      },
    );
    assert.deepEqual(answer({ statusCode: '404', body: 'gone' }).status, 404);
    assert.equal(answer({ statusCode: 200, body: { a: [1] } }).body, '{"a":[1]}');
    assert.deepEqual(answer({ statusCode: 200, headers: { Vary: ['a', 'b'] } }).headers[0], ['vary', 'a,b']);
  });

  it('gives back every byte of a binary body', () => {
    const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => (index * 7) % 256));
    for (const body of [
      bytes.toString('base64'),
      bytes.toString('base64url'),
      `${bytes.toString('base64')}\n`,
    ]) {
      const made = fromFunctionUrlAnswer(
        Buffer.from(JSON.stringify({ statusCode: 200, body, isBase64Encoded: true })),
      );
      assert.ok('body' in made && bytes.equals(made.body));
    }
  });

  it('has no body where there can be none', () => {
    for (const statusCode of [204, 205, 304]) assert.equal(answer({ statusCode, body: 'x' }).body, '');
  });

  it('does not speak for the connection, the service or the whole origin', () => {
    const names = [
      ...['Connection', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade', 'Trailer', 'Proxy-Authenticate', 'TE'],
      ...['Content-Length', 'Date', 'X-Request-Id', 'Strict-Transport-Security', 'Clear-Site-Data'],
      ...['Service-Worker-Allowed', 'Alt-Svc', 'Report-To', 'NEL'],
    ];
    const headers = Object.fromEntries(names.map((name) => [name, '1']));
    assert.deepEqual(answer({ statusCode: 200, headers }).headers, [json]);
    const named = { Connection: 'x-hop', 'X-Hop': '1', 'X-Kept': '1' };
    assert.deepEqual(answer({ statusCode: 200, headers: named }).headers, [['x-kept', '1'], json]);
  });

  it('is malformed when it cannot be sent', () => {
    assert.deepEqual(fromFunctionUrlAnswer(Buffer.from('{"statusCode":')), { malformed: 'is not JSON' });
    assert.deepEqual(fromFunctionUrlAnswer(Buffer.alloc(0)), { malformed: 'is not JSON' });
    for (const statusCode of [
      0,
      99,
      100,
      101,
      199,
      600,
      200.5,
      -1,
      '2000',
      'OK',
      '',
      null,
      true,
      [200],
      {},
    ]) {
      assert.match(malformed({ statusCode }), /statusCode/, JSON.stringify(statusCode));
    }
    for (const headers of ['x', [], 5, true])
      assert.match(malformed({ statusCode: 200, headers }), /headers/);
    const bad: [string, unknown][] = [
      ['x', 'a\r\nSet-Cookie: stolen=1'],
      ['x', 'a\nb'],
      ['x', '漢'],
      ['x', '\0'],
      ['x', null],
      ['x', { a: 1 }],
      ['x', [[null]]],
      ['a b', '1'],
      ['', '1'],
      ['x:', '1'],
      ['ü', '1'],
    ];
    for (const [name, value] of bad) {
      assert.match(
        malformed({ statusCode: 200, headers: { [name]: value } }),
        /has a header .* cannot be sent/,
      );
    }
    for (const cookies of ['a=1', {}, 5]) assert.match(malformed({ statusCode: 200, cookies }), /not a list/);
    for (const cookie of [5, null, 'a\r\nb', {}]) {
      assert.match(malformed({ statusCode: 200, cookies: ['ok=1', cookie] }), /has a cookie/);
    }
    for (const body of ['$$$', 'not base64!', 5, { a: 1 }]) {
      assert.match(malformed({ statusCode: 200, body, isBase64Encoded: true }), /not base64/);
    }
    for (const isBase64Encoded of ['true', 1, {}]) {
      assert.match(malformed({ statusCode: 200, body: '', isBase64Encoded }), /isBase64Encoded/);
    }
  });
});

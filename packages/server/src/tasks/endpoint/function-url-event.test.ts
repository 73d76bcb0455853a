import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { endpointRequest, overHttp, receivedAt } from './endpoint.fixture.ts';
import { type EndpointRequest, endpointTarget } from './endpoint-request.ts';
import { toFunctionUrlEvent } from './function-url-event.ts';

const open = { isPublic: true, withholdAuthorization: false };

function event(other: Partial<EndpointRequest> = {}) {
  return toFunctionUrlEvent(endpointRequest(other), open);
}

describe('the event of a request to an endpoint', { timeout: 30_000 }, () => {
  it('has every field of payload version 2.0', () => {
    const made = event({
      method: 'POST',
      path: '/my/path',
      queryString: 'parameter1=value1&parameter1=value2&parameter2=value',
      rawHeaders: [
        'Host',
        'data.example.com:8443',
        'Header1',
        'value1',
        'header2',
        'value1',
        'HEADER2',
        'value2',
        'Cookie',
        'cookie1=a; cookie2=b',
        'User-Agent',
        'agent',
        'Content-Type',
        'text/plain',
      ],
      body: Buffer.from('Hello from client!'),
    });
    assert.deepEqual(made, {
      version: '2.0',
      routeKey: '$default',
      rawPath: '/my/path',
      rawQueryString: 'parameter1=value1&parameter1=value2&parameter2=value',
      cookies: ['cookie1=a', 'cookie2=b'],
      headers: {
        host: 'data.example.com:8443',
        header1: 'value1',
        header2: 'value1,value2',
        'user-agent': 'agent',
        'content-type': 'text/plain',
        'content-length': '18',
        'x-forwarded-for': '203.0.113.9',
        'x-forwarded-proto': 'https',
        'x-forwarded-port': '8443',
      },
      queryStringParameters: { parameter1: 'value1,value2', parameter2: 'value' },
      requestContext: {
        accountId: 'anonymous',
        apiId: 'shop',
        domainName: 'data.example.com',
        domainPrefix: 'data',
        http: {
          method: 'POST',
          path: '/my/path',
          protocol: 'HTTP/1.1',
          sourceIp: '203.0.113.9',
          userAgent: 'agent',
        },
        requestId: 'request-1',
        routeKey: '$default',
        stage: '$default',
        time: '05/Mar/2026:09:08:07 +0000',
        timeEpoch: receivedAt,
      },
      body: 'Hello from client!',
      isBase64Encoded: false,
    });
  });

  it('leaves out what a request has not', () => {
    const made = event();
    for (const field of ['cookies', 'queryStringParameters', 'body']) assert.ok(!(field in made), field);
    assert.equal(made.isBase64Encoded, false);
    assert.equal(made.rawQueryString, '');
    assert.equal(made.requestContext.http.userAgent, '');
    assert.equal(made.headers['x-forwarded-port'], '443');
    assert.equal(event({ scheme: 'http' }).headers['x-forwarded-port'], '80');
    assert.ok(!('content-length' in made.headers));
  });

  it('passes on the path and the query as they were sent', () => {
    const raw = '/a%2Fb/%E6%BC%A2/../c//d;e=1';
    assert.equal(event({ path: raw }).rawPath, raw);
    assert.equal(event({ path: raw }).requestContext.http.path, raw);
    const queries: [string, Record<string, string> | undefined][] = [
      ['', undefined],
      ['a', { a: '' }],
      ['a=1&a=2&b=&a=3', { a: '1,2,3', b: '' }],
      ['q=%E6%BC%A2+x%2By', { q: '漢 x+y' }],
      ['bad=%zz&worse=%ff', { bad: '%zz', worse: '\ufffd' }],
      ['__proto__=1&constructor=2', JSON.parse('{"__proto__":"1","constructor":"2"}')],
      ['&&', undefined],
      ['a=b=c&?=d', { a: 'b=c', '?': 'd' }],
    ];
    for (const [queryString, expected] of queries) {
      const made = event({ queryString });
      assert.equal(made.rawQueryString, queryString);
      assert.deepEqual(made.queryStringParameters, expected, queryString);
      assert.equal(JSON.stringify(made.queryStringParameters), JSON.stringify(expected));
    }
  });

  it('finds the part of the URL that is for the task', () => {
    const base = '/v1/organization/acme/endpoint/shop';
    const targets: [string, string, string][] = [
      ['', '/', ''],
      ['/', '/', ''],
      ['?a=1', '/', 'a=1'],
      ['/?', '/', ''],
      ['/a/b?c=/d?e', '/a/b', 'c=/d?e'],
      ['//a', '//a', ''],
      ['/%2e%2e/a%3Fb', '/%2e%2e/a%3Fb', ''],
    ];
    for (const [rest, path, queryString] of targets) {
      assert.deepEqual(endpointTarget(base + rest), { path, queryString }, rest);
    }
    assert.equal(endpointTarget('/v1/organization/acme/other/shop/a'), undefined);
    assert.equal(endpointTarget('/v1/organization/acme/endpoint/'), undefined);
  });

  it('has text as text by its media type, and everything else in base64', () => {
    const cases: [string | undefined, boolean][] = [
      ['text/plain', true],
      ['text/html; charset=utf-8', true],
      ['TEXT/CSV', true],
      ['application/json', true],
      ['application/json;charset=UTF-8', true],
      ['application/xml', true],
      ['application/javascript', true],
      ['application/problem+json', true],
      ['image/svg+xml', true],
      ['application/x-www-form-urlencoded', false],
      ['multipart/form-data; boundary=x', false],
      ['application/octet-stream', false],
      ['image/png', false],
      ['application/jsonx', false],
      ['', false],
      [undefined, false],
    ];
    for (const [type, isText] of cases) {
      const rawHeaders = type === undefined ? [] : ['Content-Type', type];
      const made = event({ method: 'POST', rawHeaders, body: Buffer.from('größe=漢') });
      assert.equal(made.isBase64Encoded, !isText, String(type));
      assert.equal(made.body, isText ? 'größe=漢' : Buffer.from('größe=漢').toString('base64'), String(type));
    }
  });

  it('never changes a byte of a body', () => {
    const bodies: [Buffer, string[], boolean][] = [
      [Buffer.from([0xff, 0xfe, 0x61]), ['Content-Type', 'text/plain'], true],
      [Buffer.from('gr\xf6\xdfe', 'latin1'), ['Content-Type', 'text/plain; charset=latin1'], true],
      [Buffer.from('\ufeffwith a mark'), ['Content-Type', 'text/plain'], false],
      [Buffer.from('nul \0 and \r\n'), ['Content-Type', 'text/plain'], false],
      [gzipSync('{}'), ['Content-Type', 'application/json', 'Content-Encoding', 'gzip'], true],
      [Buffer.from('{}'), ['Content-Type', 'application/json', 'Content-Encoding', 'gzip'], true],
      [Buffer.from('{}'), ['Content-Type', 'application/json', 'Content-Encoding', 'identity'], false],
      [Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), ['Content-Type', 'image/png'], true],
    ];
    for (const [body, rawHeaders, isBase64] of bodies) {
      const made = event({ method: 'PUT', rawHeaders, body });
      assert.equal(made.isBase64Encoded, isBase64);
      assert.deepEqual(Buffer.from(made.body ?? '', isBase64 ? 'base64' : 'utf8'), body);
    }
  });

  it('drops headers of the connection, and those that the connection names', () => {
    const { headers } = event({
      rawHeaders: [
        ...['Connection', 'keep-alive, X-Private', 'Connection', 'close', 'Keep-Alive', 'timeout=5'],
        ...['X-Private', 'secret', 'TE', 'trailers', 'Trailer', 'x', 'Transfer-Encoding', 'chunked'],
        ...[
          'Upgrade',
          'h2c',
          'Proxy-Authorization',
          'Basic x',
          'Proxy-Connection',
          'x',
          'Expect',
          '100-continue',
        ],
        ...['X-Kept', '1'],
      ],
    });
    assert.deepEqual(Object.keys(headers), [
      'x-kept',
      'x-forwarded-for',
      'x-forwarded-proto',
      'x-forwarded-port',
    ]);
  });

  it('does not believe the caller about where it comes from', () => {
    const { headers, requestContext } = event({
      rawHeaders: [
        'X-Forwarded-For',
        '127.0.0.1',
        'X-Forwarded-Proto',
        'gopher',
        'Forwarded',
        'for=localhost',
      ],
    });
    assert.equal(headers['x-forwarded-for'], '203.0.113.9');
    assert.equal(headers['x-forwarded-proto'], 'https');
    assert.equal(headers.forwarded, undefined);
    assert.equal(requestContext.http.sourceIp, '203.0.113.9');
  });

  it('passes the credential of the caller on only when it is not for the service', () => {
    const request = endpointRequest({ rawHeaders: ['Authorization', 'Basic dXNlcjpwYXNz'] });
    assert.equal(toFunctionUrlEvent(request, open).headers.authorization, 'Basic dXNlcjpwYXNz');
    const members = toFunctionUrlEvent(request, { isPublic: false, withholdAuthorization: true });
    assert.equal(members.headers.authorization, undefined);
    assert.equal(members.requestContext.accountId, 'acme');
  });

  it('has cookies of one or several headers', () => {
    const cookies = (...values: string[]) =>
      event({ rawHeaders: values.flatMap((value) => ['Cookie', value]) }).cookies;
    assert.deepEqual(cookies('a=1'), ['a=1']);
    assert.deepEqual(cookies('a=1; b=2;c=3'), ['a=1', 'b=2', 'c=3']);
    assert.deepEqual(cookies('a=1', 'b="x y"; c'), ['a=1', 'b="x y"', 'c']);
    assert.equal(cookies(' ; '), undefined);
  });

  it('is made of what Node receives, whatever the method', async () => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
      const request = await overHttp({
        method,
        path: '/a%20b?x=%2F&x=2',
        headers: {
          ...(hasBody ? { 'Transfer-Encoding': 'chunked' } : {}),
          'X-Twice': ['1', '2'],
          Cookie: ['a=1', 'b=2'],
          'Content-Type': 'application/json',
        },
        ...(hasBody ? { body: Buffer.from('{"漢":1}') } : {}),
      });
      const made = toFunctionUrlEvent(request, open);
      assert.equal(made.requestContext.http.method, method);
      assert.equal(made.rawPath, '/a%20b');
      assert.deepEqual(made.queryStringParameters, { x: '/,2' });
      assert.equal(made.headers['x-twice'], '1,2');
      assert.deepEqual(made.cookies, ['a=1', 'b=2']);
      assert.equal(made.body, hasBody ? '{"漢":1}' : undefined);
      assert.equal(made.headers['transfer-encoding'], undefined);
      assert.equal(made.headers['content-length'], hasBody ? '9' : undefined);
    }
  });
});

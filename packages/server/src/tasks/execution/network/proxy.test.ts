import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isPublicAddress } from './addresses.ts';
import { AllowList } from './allow-list.ts';
import { type FilteringProxy, openProxy, type ProxyOptions } from './proxy.ts';

describe('the proxy of a filtered network', () => {
  let folder: string;
  let target: Server;
  let port: number;
  const open: FilteringProxy[] = [];
  let made = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mr-proxy-'));
    target = createServer((incoming, response) => {
      if (incoming.url === '/away') response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
      else response.end(`${incoming.method} ${incoming.url} for ${incoming.headers.host}`);
    });
    target.listen(0, '127.0.0.1');
    await once(target, 'listening');
    const address = target.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  after(async () => {
    for (const proxy of open) proxy.close();
    target.close();
    target.closeAllConnections();
    await rm(folder, { recursive: true });
  });

  async function start(options: Partial<ProxyOptions>): Promise<string> {
    made += 1;
    const socketPath = join(folder, String(made));
    open.push(await openProxy({ socketPath, allow: [`shop.example:${port}`], ...options }));
    return socketPath;
  }

  function get(socketPath: string, url: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const sent = request({ socketPath, path: url, agent: false }, (answer) => {
        let text = '';
        answer.on('data', (piece) => {
          text += piece;
        });
        answer.on('end', () => resolve(`${answer.statusCode} ${text.trim()}`));
      });
      sent.on('error', reject);
      sent.end();
    });
  }

  function tunnel(socketPath: string, authority: string, then = ''): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect(socketPath);
      let text = '';
      socket.setEncoding('utf8');
      socket.on('data', (piece) => {
        text += piece;
        if (then !== '' && text.includes('established\r\n\r\n') && !text.includes('for ')) socket.write(then);
      });
      socket.on('close', () => resolve(text));
      socket.on('error', () => resolve(text));
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
    });
  }

  // The target of these tests is on loopback, so these say that it is public, and only it.
  const believing = {
    resolve: async () => ['127.0.0.1'],
    isPublic: (address: string) => address === '127.0.0.1',
  };

  it('forwards to an allowed host, with and without a tunnel', async () => {
    const path = await start(believing);
    assert.equal(
      await get(path, `http://shop.example:${port}/a?b=c`),
      `200 GET /a?b=c for shop.example:${port}`,
    );
    const said = await tunnel(
      path,
      `shop.example:${port}`,
      'GET /t HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n',
    );
    assert.match(said, /200 Connection established[\s\S]*GET \/t for shop\.example/);
  });

  it('leaves redirects to the task, whose next request is checked again', async () => {
    const path = await start({
      ...believing,
      allow: ['*:80', `*:${port}`],
      resolve: async (host) => [host === 'shop.example' ? '127.0.0.1' : host],
    });
    assert.match(await get(path, `http://shop.example:${port}/away`), /^302/);
    assert.match(await get(path, 'http://169.254.169.254/'), /^403 .*not public/);
  });

  it('refuses a host that is not on the list, and any port that is not', async () => {
    const path = await start(believing);
    assert.match(
      await get(path, `http://other.example:${port}/`),
      /^403 Tasks may not connect to other\.example/,
    );
    assert.match(await get(path, 'http://shop.example:22/'), /^403/);
    assert.match(await tunnel(path, 'other.example:443'), /403 Refused/);
    assert.match(await tunnel(path, 'nonsense'), /400 Refused/);
    assert.match(await get(path, '/just/a/path'), /^400/);
  });

  it('refuses names and addresses that lead to the host or the networks around it', async () => {
    const path = await start({ allow: ['*', `*:${port}`] });
    for (const host of [
      '127.0.0.1',
      'localhost',
      '[::1]',
      '169.254.169.254',
      '10.1.2.3',
      '192.168.1.1',
      '0.0.0.0',
      '[::ffff:127.0.0.1]',
      '2130706433',
      '0x7f.1',
    ]) {
      assert.match(await get(path, `http://${host}:${port}/`), /^403/, host);
      assert.match(await tunnel(path, `${host}:${port}`), /(403|502) Refused/, host);
    }
  });

  it('refuses a name with one address that is not public among others', async () => {
    const path = await start({ allow: ['*:443'], resolve: async () => ['93.184.215.14', '10.0.0.1'] });
    assert.match(await tunnel(path, 'rebinding.example:443'), /403 Refused[\s\S]*not public/);
  });
});

it('public addresses are told from all others', () => {
  for (const address of ['1.1.1.1', '93.184.215.14', '172.32.0.1', '2606:4700::1111']) {
    assert.equal(isPublicAddress(address), true, address);
  }
  for (const address of [
    '127.0.0.1',
    '127.1.2.3',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001:db8::1',
    'ff02::1',
    'name',
    '',
  ]) {
    assert.equal(isPublicAddress(address), false, address);
  }
});

it('an allow list knows hosts, domains and ports', () => {
  const list = new AllowList(['Api.Example.com', '*.shop.example', 'db.example:5432']);
  for (const [host, port] of [
    ['api.example.com', 443],
    ['api.example.com.', 80],
    ['a.b.shop.example', 443],
    ['db.example', 5432],
  ] as const) {
    assert.equal(list.allows(host, port), true, host);
  }
  for (const [host, port] of [
    ['api.example.com', 8080],
    ['shop.example', 443],
    ['evilshop.example', 443],
    ['db.example', 443],
    ['example.com', 443],
  ] as const) {
    assert.equal(list.allows(host, port), false, host);
  }
  assert.equal(new AllowList([]).allows('a', 443), false);
});

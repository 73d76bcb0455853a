/**
 * The only way out for tasks whose network is filtered: an HTTP proxy on a socket file. It resolves names
 * itself, refuses any that leads to this host or a network around it, and connects to the address it
 * checked, so a name cannot change its mind in between. A redirect is a new request and is checked anew.
 */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createServer, request as httpRequest } from '../../../platform/node-http.ts';
import { isPublicAddress } from './addresses.ts';
import { AllowList } from './allow-list.ts';

export interface ProxyOptions {
  readonly socketPath: string;
  readonly allow: readonly string[];
  /** All addresses of a name. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  readonly isPublic?: (address: string) => boolean;
}

export interface FilteringProxy {
  close(): void;
}

type Verdict = { readonly address: string } | { readonly refusal: string; readonly status: number };

const connections = 1024;
const connectMs = 15_000;
const idleMs = 120_000;
/** Headers that speak about one connection only. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export async function openProxy(options: ProxyOptions): Promise<FilteringProxy> {
  const allowed = new AllowList(options.allow);
  const resolve = options.resolve ?? resolveAll;
  const isPublic = options.isPublic ?? isPublicAddress;
  const open = new Set<Socket>();

  async function judge(host: string, port: number): Promise<Verdict> {
    if (host === '' || !Number.isInteger(port) || port < 1 || port > 65_535) {
      return { status: 400, refusal: 'The target is not a host and a port.' };
    }
    if (!allowed.allows(host, port)) {
      return { status: 403, refusal: `Tasks may not connect to ${host}:${port}.` };
    }
    const addresses = await resolve(host).catch((): readonly string[] => []);
    if (addresses.length === 0) return { status: 502, refusal: `${host} has no address.` };
    const [address] = addresses;
    // One wrong address is enough: a name that has both is made to get past this.
    if (address === undefined || !addresses.every(isPublic)) {
      return { status: 403, refusal: `${host} leads to an address that is not public.` };
    }
    return { address };
  }

  async function tunnel(request: IncomingMessage, near: Socket, head: Buffer): Promise<void> {
    near.on('error', () => near.destroy());
    const { host, port } = splitAuthority(request.url ?? '');
    const verdict = await judge(host, port);
    if ('refusal' in verdict) {
      const { status, refusal } = verdict;
      near.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${refusal}\n`,
      );
      return;
    }
    const far = connect({ host: verdict.address, port });
    track(open, far);
    const slow = setTimeout(() => far.destroy(new Error('timed out')), connectMs);
    far.once('connect', () => {
      clearTimeout(slow);
      near.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.byteLength > 0) far.write(head);
      far.pipe(near).pipe(far);
    });
    far.once('close', () => clearTimeout(slow));
    far.on('error', () => near.destroy());
    near.once('close', () => far.destroy());
    far.setTimeout(idleMs, () => far.destroy());
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '');
    if (url === null || url.protocol !== 'http:') {
      response
        .writeHead(400, { connection: 'close' })
        .end('The target must be an http URL; use CONNECT for https.\n');
      return;
    }
    const port = url.port === '' ? 80 : Number(url.port);
    const verdict = await judge(unbracket(url.hostname), port);
    if ('refusal' in verdict) {
      response.writeHead(verdict.status, { 'content-type': 'text/plain' }).end(`${verdict.refusal}\n`);
      return;
    }
    const headers = Object.entries(request.headers).filter(([name]) => !hopByHop.has(name));
    const far = httpRequest({
      host: verdict.address,
      port,
      method: request.method,
      path: `${url.pathname}${url.search}`,
      headers: { ...Object.fromEntries(headers), host: url.host },
      timeout: idleMs,
      agent: false,
    });
    far.once('response', (answer) => {
      const kept = Object.entries(answer.headers).filter(([name]) => !hopByHop.has(name));
      response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    far.on('timeout', () => far.destroy(new Error('timed out')));
    far.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    response.once('close', () => far.destroy());
    request.pipe(far);
  }

  const server = createServer((request, response) => void forward(request, response));
  server.on('connect', (request, socket: Socket, head) => void tunnel(request, socket, head));
  server.on('upgrade', (_request, socket) => socket.destroy());
  server.on('clientError', (_error, socket) => socket.destroy());
  server.on('connection', (socket) => track(open, socket));
  server.maxConnections = connections;
  server.listen(options.socketPath);
  await once(server, 'listening');
  chmodSync(options.socketPath, 0o666);
  return {
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function track(open: Set<Socket>, socket: Socket): void {
  open.add(socket);
  socket.once('close', () => open.delete(socket));
}

async function resolveAll(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** `host:port` of a CONNECT, with brackets around an address of IPv6. */
function splitAuthority(authority: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(authority) ?? [];
  return { host: unbracket(host), port: Number(port) };
}

function unbracket(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

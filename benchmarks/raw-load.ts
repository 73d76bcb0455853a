import { connect, type Socket } from 'node:net';
import type { LoadOptions, LoadResult } from './load.ts';

/** One request after the other on each connection, until the time is over. */
export async function rawLoad(options: LoadOptions): Promise<LoadResult> {
  const { hostname, port, pathname, search, host } = new URL(options.url);
  const { body } = options;
  const headers = Object.entries(options.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  if (body !== undefined) headers.push(`content-length: ${Buffer.byteLength(body)}\r\n`);
  const head = ` HTTP/1.1\r\nhost: ${host}\r\n${headers.join('')}\r\n`;
  let count = 0;
  const request = () => {
    if (body === undefined) return `GET ${pathname}${search}${head}`;
    count += 1;
    return `POST ${`${pathname}${search}`.replace('NUMBER', String(count % 1000))}${head}${body}`;
  };
  const latencies: number[] = [];
  const end = performance.now() + options.seconds * 1000;

  const client = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
      let started = 0;
      let received = '';
      const ask = () => {
        started = performance.now();
        socket.write(request());
      };
      socket.setEncoding('latin1');
      socket.on('connect', ask);
      socket.on('error', reject);
      socket.on('data', (text: string) => {
        received += text;
        const head = received.indexOf('\r\n\r\n');
        if (head < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
        if (received.length < head + 4 + length) return;
        if (!received.startsWith('HTTP/1.1 2')) {
          reject(new Error(`a request was answered with ${received.slice(0, 40)}`));
          socket.destroy();
          return;
        }
        received = '';
        latencies.push(performance.now() - started);
        if (performance.now() < end) ask();
        else {
          socket.destroy();
          resolve();
        }
      });
    });

  await Promise.all(Array.from({ length: options.connections }, client));
  latencies.sort((a, b) => a - b);
  return {
    requestsPerSecond: latencies.length / options.seconds,
    p99Milliseconds: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
  };
}

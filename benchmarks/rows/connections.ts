import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { Row } from '../row.ts';
import { openSite, residentMebibytes } from '../site.ts';

const idle = 10_000;
const publishers = 1000;

/** Ten thousand connections that say nothing, and a thousand that publish at the same time. */
export async function manyConnections(seconds: number): Promise<Row> {
  const { service, organizationUrl, headers, message } = await openSite();
  const { port } = new URL(service.url);
  const holder = spawn(
    process.execPath,
    [fileURLToPath(new URL('../idle-connections.ts', import.meta.url)), port, String(idle)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  try {
    const [line] = await once(holder.stdout, 'data', { signal: AbortSignal.timeout(60_000) });
    const opened = Number(/^(\d+) open/.exec(String(line))?.[1]);
    const agent = new Agent({ keepAlive: true, maxSockets: publishers });
    let answered = 0;
    let failed = 0;
    const end = performance.now() + seconds * 1000;
    const publish = (key: number): Promise<void> =>
      new Promise((resolve) => {
        const url = `${organizationUrl}/topic/clicks/message?messageKey=k${key}`;
        const sent = request(url, { method: 'POST', headers, agent }, (response) => {
          response.resume();
          response.on('end', () => {
            if (response.statusCode === 200) answered += 1;
            else failed += 1;
            resolve();
          });
        });
        sent.on('error', () => {
          failed += 1;
          resolve();
        });
        sent.end(message);
      });
    const publisher = async (key: number) => {
      do await publish(key);
      while (performance.now() < end);
    };
    await Promise.all(Array.from({ length: publishers }, (_value, key) => publisher(key)));
    const memory = residentMebibytes(service);
    agent.destroy();
    return {
      what: '10,000 idle and 1,000 publishing connections',
      figure: `${idle - opened} refused, ${failed} of ${answered + failed} failed, ${Math.round(memory)} MiB`,
      bar: 'none refused, at most 400 MiB',
      reached: opened === idle && failed === 0 && memory <= 400,
    };
  } finally {
    holder.kill('SIGTERM');
    await service.remove();
  }
}

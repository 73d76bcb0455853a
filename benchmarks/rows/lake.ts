import { readdirSync, readFileSync } from 'node:fs';
import { startService } from '../../acceptance/harness/service.ts';
import { ask } from '../query.ts';
import type { Row } from '../row.ts';
import { message, openSite, type Site } from '../site.ts';

const backlog = 2_000_000;
const batchSize = 5_000;
const publishers = 8;

/** How fast a backlog becomes files: the service is started on it and asked for the count. */
export async function lakeDrain(): Promise<Row[]> {
  // The first service writes no file of its own accord.
  const site = await openSite({ MILLRACE_LAKE_FILE_SECONDS: '3600', MILLRACE_LAKE_FILE_BYTES: '1073741824' });
  try {
    await fill(site);
    await site.service.stop();
    const service = await startService({
      dataDirectory: site.service.dataDirectory,
      environment: { MILLRACE_RATE_LIMIT_DEFAULT: '1000000' },
    });
    const started = performance.now();
    let memory = 0;
    let own = 0;
    const watch = setInterval(() => {
      const { tree, process } = mebibytesOfTree(service.process.pid ?? 0);
      memory = Math.max(memory, tree);
      own = Math.max(own, process);
    }, 1000);
    try {
      const organizationUrl = site.organizationUrl.replace(site.service.url, service.url);
      const counted = await ask({ ...site, service, organizationUrl }, 'SELECT count(*) FROM clicks');
      const rate = backlog / ((performance.now() - started) / 1000);
      if (counted.rows[0]?.[0] !== String(backlog)) throw new Error(`${counted.rows[0]?.[0]} are there`);
      return [
        {
          what: 'lake writer, backlog of 2 million',
          figure: `${Math.round(rate)} messages/s`,
          bar: 'at least 200000/s',
          reached: rate >= 200_000,
        },
        {
          what: 'memory while draining',
          figure: `${Math.round(memory)} MiB, ${Math.round(own)} of it the service`,
          bar: 'under 512 MiB',
          reached: memory < 512,
        },
      ];
    } finally {
      clearInterval(watch);
      await service.stop();
    }
  } finally {
    await site.service.remove();
  }
}

async function fill(site: Site): Promise<void> {
  let made = 0;
  const publisher = async () => {
    while (made < backlog) {
      const first = made;
      made += batchSize;
      const batch = Array.from({ length: batchSize }, (_value, index) =>
        message
          .trimEnd()
          .replace('user-000042', `user-${String((first + index) % 100_000).padStart(6, '0')}`),
      ).join('\n');
      const response = await fetch(`${site.organizationUrl}/topic/clicks/messages?messageKeyPath=/user`, {
        method: 'POST',
        headers: { ...site.headers, 'content-type': 'application/x-ndjson' },
        body: batch,
      });
      const answer = await response.text();
      if (!answer.includes(`"accepted":${batchSize}`)) throw new Error(`a batch was not accepted: ${answer}`);
    }
  };
  await Promise.all(Array.from({ length: publishers }, publisher));
}

/**
 * The memory of a process, and of it with all its children. What several of them share, such as the programs
 * themselves, counts once: as the kernel's proportional size has it.
 */
function mebibytesOfTree(root: number): { tree: number; process: number } {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      parents.set(Number(name), Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]));
    } catch {
      // It has ended since.
    }
  }
  const belongs = (id: number): boolean => id === root || (id > 1 && belongs(parents.get(id) ?? 0));
  const sizes = new Map([...parents.keys()].filter(belongs).map((id) => [id, sharedFairly(id)]));
  const tree = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  return { tree, process: sizes.get(root) ?? 0 };
}

function sharedFairly(id: number): number {
  try {
    const sizes = readFileSync(`/proc/${id}/smaps_rollup`, 'utf8');
    return Number(/^Pss:\s+(\d+) kB/m.exec(sizes)?.[1] ?? 0) / 1024;
  } catch {
    // It has ended since.
    return 0;
  }
}

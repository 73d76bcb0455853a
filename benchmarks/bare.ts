import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A bare `node:http` server in a process of its own. */
export async function startBareServer(): Promise<{ url: string; stop(): void }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./bare-http.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data', { signal: AbortSignal.timeout(10_000) });
  const url = /http:\S+/.exec(String(line))?.[0];
  if (url === undefined) throw new Error('the bare server did not start');
  return { url, stop: () => child.kill('SIGTERM') };
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, within } from './service.ts';

/** How a start ended that could not be. */
export interface RefusedStart {
  readonly code: number | null;
  readonly stdout: string;
  /** What it said, a line for each reason. */
  readonly lines: readonly string[];
}

/** Starts the service with settings that it should refuse, and waits for its end. */
export async function refusedStart(environment: Readonly<Record<string, string>>): Promise<RefusedStart> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-acceptance-'));
  const started = launch({ MILLRACE_DATA_DIR: directory, MILLRACE_PORT: '0', ...environment });
  try {
    const code = await within(started.exited, 15_000, 'the service neither refused to start nor ended');
    const { stdout, stderr } = started.output();
    return { code, stdout, lines: stderr.split('\n').filter((line) => line !== '') };
  } finally {
    started.child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

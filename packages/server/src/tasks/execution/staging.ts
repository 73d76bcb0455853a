import { execFile } from 'node:child_process';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Random, randomId } from '../../platform/random.ts';
import type { Host } from './host.ts';

/** The code of a version where its processes can read it. */
export interface StagedCode {
  readonly directory: string;
  /** The group that may read it, where it is not for everyone. */
  readonly groupId?: number;
  release(): Promise<void>;
}

const copyMilliseconds = 120_000;
const copyScript = 'cp -R "$1" "$2" && chown -R "0:$3" "$2" && chmod -R u=rwX,g=rX,o= "$2"';

/**
 * Code stays where it is, except for a service that is root and has no sandbox: its data is out of reach
 * for the users that tasks run as, so the code is copied to where just they can read it.
 */
export async function stageCode(host: Host, codeDirectory: string, random: Random): Promise<StagedCode> {
  const users = host.users;
  if (users === undefined) return { directory: codeDirectory, release: async () => {} };
  if (host.sandbox !== undefined) {
    // The folder above keeps others out; in the sandbox this is the root of what the task can see.
    await chmod(codeDirectory, 0o755);
    return { directory: codeDirectory, release: async () => {} };
  }
  const directory = join(host.directory, `code-${randomId(random)}`);
  const groupId = users.take();
  const release = async (): Promise<void> => {
    users.release(groupId);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await copy(codeDirectory, directory, groupId);
  } catch (error) {
    await release();
    throw error;
  }
  return { directory, groupId, release };
}

function copy(from: string, to: string, groupId: number): Promise<void> {
  const parameters = ['-c', copyScript, 'sh', from, to, String(groupId)];
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', parameters, { timeout: copyMilliseconds }, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

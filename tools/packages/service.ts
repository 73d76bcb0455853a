import assert from 'node:assert/strict';
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { within } from '../../acceptance/harness/service.ts';
import { eventually } from '../../acceptance/harness/waiting.ts';

export interface StartedService {
  readonly url: string;
  /** Sends SIGTERM to the command, as a supervisor does, waits, and tells the exit code. */
  terminate(): Promise<number | null>;
  /** Sends SIGINT to the command and to all that it has started, as a terminal does, and waits. */
  interrupt(): Promise<number | null>;
  /** For the end of a test, whatever has become of it. */
  kill(): void;
  said(): string;
}

const startMilliseconds = 60_000;
const endMilliseconds = 40_000;

/** Starts a service in a group of processes of its own, and waits until it says that it is ready. */
export async function startInstalled(
  command: string,
  words: readonly string[],
  options: SpawnOptions,
): Promise<StartedService> {
  const child = spawn(command, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const kill = () => signalGroup(child, 'SIGKILL');
  try {
    const url = await eventually('the service is ready', startMilliseconds, () => {
      assert.equal(child.exitCode, null, said);
      return /^millrace ready on (\S+)$/m.exec(said)?.[1];
    });
    const end = () => within(ended, endMilliseconds, `the service did not end.\n${said}`);
    const terminate = () => {
      child.kill('SIGTERM');
      return end();
    };
    const interrupt = () => {
      signalGroup(child, 'SIGINT');
      return end();
    };
    return { url, terminate, interrupt, kill, said: () => said };
  } catch (error) {
    kill();
    throw error;
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid, signal);
}

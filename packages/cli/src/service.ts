import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CommandError, type Invocation } from './command.ts';

export interface RunningService {
  readonly url: string;
  stop(): Promise<void>;
}

const startMilliseconds = 30_000;
const stopMilliseconds = 40_000;

/** The settings that flags of a command stand for. */
export function serviceEnvironment(invocation: Invocation): NodeJS.ProcessEnv {
  const { options } = invocation;
  const port = options.number('port', { least: 0, most: 65_535 });
  const directory = options.text('data-dir');
  return {
    ...process.env,
    ...(port === undefined ? {} : { MILLRACE_PORT: String(port) }),
    ...(directory === undefined ? {} : { MILLRACE_DATA_DIR: directory }),
  };
}

/** Starts the service in a process of its own and waits until it is ready. */
export async function runService(
  invocation: Invocation,
  more: Readonly<Record<string, string>>,
): Promise<RunningService> {
  const entry = fileURLToPath(import.meta.resolve('@millrace/server/main'));
  const child = spawn(process.execPath, [entry], {
    env: { ...serviceEnvironment(invocation), ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
    // So that ctrl-C reaches this process only, which then ends the service in order.
    detached: true,
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds);
    await exited;
    clearTimeout(force);
  };
  try {
    return { url: await readyUrl(child, exited), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function readyUrl(child: ChildProcess, exited: Promise<void>): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new CommandError('The service is not ready in time.')),
      startMilliseconds,
    );
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-4096);
      const url = /^millrace ready on (\S+)$/m.exec(text)?.[1];
      if (url === undefined) return;
      clearTimeout(late);
      resolve(url);
    });
    void exited.then(() => {
      clearTimeout(late);
      reject(new CommandError('The service ended instead of being ready.'));
    });
  });
}

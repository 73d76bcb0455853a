import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CommandError, type Invocation } from './command.ts';

export interface RunningService {
  readonly url: string;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

const startMilliseconds = 30_000;
const stopMilliseconds = 40_000;

/** The settings that flags of a command stand for. */
export function serviceEnvironment({ options }: Invocation): Record<string, string> {
  const port = options.number('port', { least: 0, most: 65_535 });
  const directory = options.text('data-dir');
  const host = options.text('host');
  return {
    ...(port === undefined ? {} : { MILLRACE_PORT: String(port) }),
    ...(directory === undefined ? {} : { MILLRACE_DATA_DIR: directory }),
    ...(host === undefined ? {} : { MILLRACE_HOST: host }),
  };
}

/** Starts the service in a process of its own, with exactly this environment, and waits until it is ready. */
export async function runService(
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<RunningService> {
  const entry = fileURLToPath(import.meta.resolve('@millrace/server/main'));
  const child = spawn(process.execPath, ['--disable-sigusr1', entry], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    // So that ctrl-C reaches this process only, which then ends the service in order.
    detached: true,
  });
  // Whatever ends this process takes the service with it.
  const endWithUs = () => child.kill('SIGTERM');
  process.on('exit', endWithUs);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      process.off('exit', endWithUs);
      resolve();
    });
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds);
    await ended;
    clearTimeout(force);
  };
  try {
    return { url: await readyUrl(child, ended, signal), ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function readyUrl(child: ChildProcess, ended: Promise<void>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new CommandError('The service is not ready in time.')),
      startMilliseconds,
    );
    const interrupt = () => reject(signal.reason);
    signal.addEventListener('abort', interrupt, { once: true });
    const settle = () => {
      clearTimeout(late);
      signal.removeEventListener('abort', interrupt);
    };
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-4096);
      const url = /^millrace ready on (\S+)$/m.exec(text)?.[1];
      if (url === undefined) return;
      settle();
      resolve(url);
    });
    void ended.then(() => {
      settle();
      reject(new CommandError('The service ended instead of being ready.'));
    });
  });
}

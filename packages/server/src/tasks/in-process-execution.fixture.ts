import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Execution, Invocation, InvocationResult, TaskPool } from './execution/execution.ts';
import type { RunnableVersion } from './version.ts';

type Handler = (event: unknown, context: object) => unknown;

/** Runs handlers in this process: enough of an execution for tests of what is around it. */
export function inProcessExecution(): Execution & { readonly running: Set<string> } {
  const running = new Set<string>();
  return {
    running,
    isolation: 'none: a test',
    missing: (runtime) => (runtime === 'JAVA21' ? 'This host has no JDK.' : undefined),
    probe: async (version, signal) => {
      try {
        const givenUp = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        await Promise.race([load(version), givenUp]);
        return signal.aborted ? { ok: false, error: 'given up' } : { ok: true };
      } catch (error) {
        return { ok: false, error: `${error instanceof Error ? error.name : 'Error'}: ${messageOf(error)}` };
      }
    },
    open: (version) => {
      const name = `${version.taskId}/${version.version}`;
      running.add(name);
      return openPool(version, () => running.delete(name));
    },
    close: async () => {},
  };
}

function openPool(version: RunnableVersion, onEnd: () => void): TaskPool {
  let busy = 0;
  let accepts = true;
  const idle: (() => void)[] = [];
  const failure = (
    kind: 'error' | 'timeout' | 'unavailable',
    type: string,
    message: string,
  ): InvocationResult => ({
    outcome: 'failure',
    kind,
    error: { type, message },
    durationMs: 0,
  });
  async function run({ event, requestId, onLine }: Invocation): Promise<InvocationResult> {
    const handler = await load(version);
    const print = (text: string) =>
      onLine?.({ time: Date.now(), version: version.version, requestId, stream: 'stdout', text });
    const result = await handler(JSON.parse(Buffer.from(event).toString()), { version, print });
    return { outcome: 'success', payload: Buffer.from(JSON.stringify(result ?? null)), durationMs: 1 };
  }
  return {
    trouble: undefined,
    figures: () => ({ processes: 1, busy }),
    invoke: async (invocation) => {
      if (!accepts) return failure('unavailable', 'Closed', 'The pool is closed.');
      busy += 1;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<InvocationResult>((resolve) => {
        const end = () => resolve(failure('timeout', 'Timeout', 'It ran out of time.'));
        timer = setTimeout(end, version.timeoutSec * 1000);
        invocation.signal?.addEventListener('abort', end, { once: true });
      });
      const done = run(invocation).catch((error: unknown) => failure('error', 'Error', messageOf(error)));
      const result = await Promise.race([done, late]);
      clearTimeout(timer);
      busy -= 1;
      if (busy === 0) for (const resolve of idle.splice(0)) resolve();
      return result;
    },
    drain: async () => {
      accepts = false;
      if (busy > 0) await new Promise<void>((resolve) => idle.push(resolve));
      onEnd();
    },
    close: async () => {
      accepts = false;
      onEnd();
    },
  };
}

async function load({ codeDirectory, handler }: RunnableVersion): Promise<Handler> {
  const [file = '', name = ''] = handler.split('.');
  const module: Record<string, unknown> = await import(
    pathToFileURL(join(codeDirectory, `${file}.mjs`)).href
  );
  const found = module[name];
  if (typeof found !== 'function') throw new Error(`${handler} is not a function`);
  return (event, context) => found(event, context);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

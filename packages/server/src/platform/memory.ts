import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const settleMilliseconds = 1000;

/**
 * Gives back the memory that loading the code took. What is left behind by a start is never needed again,
 * and an idle process would keep it for ever: nothing else makes it collect. It costs one short pause, a
 * second after the start.
 */
export function releaseStartMemory(): void {
  setTimeout(() => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    setFlagsFromString('--no-expose-gc');
  }, settleMilliseconds).unref();
}

import type { InvocationError } from './execution.ts';

/** Where our bootstraps are, in a sandbox and out of it, and what the runtimes bring along. */
const foreign =
  /\bnode:|\/bootstraps\/(?:node\.mjs|python3\.py)\b|"<frozen |\/importlib\/__init__\.py"|^\s*at (?:java\.base\/|Bootstrap\.)/;

/**
 * What people are told of code that does not come up: the error, and the lines of its trace that lead into
 * their own code. The frames of a runtime and of its bootstrap would only hide those.
 */
export function startWords({ type, message, trace = [] }: InvocationError): string {
  const heading = `${type}: ${message}`.split('\n');
  const told = new Set([...heading, ...message.split('\n'), 'Traceback (most recent call last):']);
  const lines: string[] = [];
  let isForeign = false;
  for (const line of trace) {
    // A frame of Python has lines of its own below it.
    if (!isForeign || !/^ {4}/.test(line)) isForeign = isFrame(line) && foreign.test(line);
    if (!isForeign && !told.has(line) && !repeats(line, message)) lines.push(line);
  }
  return [...heading, ...lines].join('\n');
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line) || /^\s+File "/.test(line);
}

/** Node begins a trace with the error once more, with its code: `Error [ERR_...]: message`. */
function repeats(line: string, message: string): boolean {
  const [first = ''] = message.split('\n');
  return first !== '' && !isFrame(line) && /^[\w.]+(?: \[\w+\])?: /.test(line) && line.endsWith(`: ${first}`);
}

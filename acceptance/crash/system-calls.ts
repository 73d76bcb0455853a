/** One call of the system by a traced process, from a line of strace or from the two it was cut into. */
export interface SystemCall {
  readonly name: string;
  /** As strace shows them, with the paths of descriptors. */
  readonly arguments: string;
  /** What it returned, or undefined when the process ended before. */
  readonly result: number | undefined;
  /** Whether strace has put the result there instead of the system. */
  readonly injected: boolean;
  /** Seconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

const whole = /^(\d+) +([\d.]+) (\w+)\((.*)\) += (-?\d+|\?)(.*?)(?: <([\d.]+)>)?$/s;
const begun = /^(\d+) +([\d.]+) (\w+)\((.*?) *<unfinished \.\.\.>$/s;
const resumed = /^(\d+) +([\d.]+) <\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?)(.*?)(?: <[\d.]+>)?$/s;

/** The calls in the order in which they ended. */
export function parseSystemCalls(trace: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const open = new Map<string, { startedAt: number; text: string }>();
  for (const line of trace.split('\n')) {
    const cut = begun.exec(line);
    if (cut !== null) {
      const [, thread = '', time, name = '', text = ''] = cut;
      open.set(`${thread} ${name}`, { startedAt: Number(time), text });
      continue;
    }
    const rest = resumed.exec(line);
    if (rest !== null) {
      const [, thread = '', time, name = '', text = '', result = '', more = ''] = rest;
      const start = open.get(`${thread} ${name}`);
      open.delete(`${thread} ${name}`);
      const endedAt = Number(time);
      const startedAt = start?.startedAt ?? endedAt;
      calls.push(callOf(name, `${start?.text ?? ''}${text}`, result, more, startedAt, endedAt));
      continue;
    }
    const match = whole.exec(line);
    if (match === null) continue;
    const [, , time, name = '', text = '', result = '', more = '', took = '0'] = match;
    calls.push(callOf(name, text, result, more, Number(time), Number(time) + Number(took)));
  }
  return calls;
}

function callOf(
  name: string,
  text: string,
  result: string,
  more: string,
  startedAt: number,
  endedAt: number,
): SystemCall {
  return {
    name,
    arguments: text,
    result: result === '?' ? undefined : Number(result),
    injected: more.includes('(INJECTED)'),
    startedAt,
    endedAt,
  };
}

export function isSync({ name }: SystemCall): boolean {
  return name === 'fdatasync' || name === 'fsync';
}

/** Whether a call is about a file of that name; only for calls whose first argument is a descriptor. */
export function isOn(call: SystemCall, file: string): boolean {
  return /^\d+<([^>]*)>/.exec(call.arguments)?.[1]?.endsWith(`/${file}`) ?? false;
}

/** Whether a call writes an answer of success that holds a text. */
export function isAnswer(call: SystemCall, text: string): boolean {
  if (call.name !== 'write' && call.name !== 'writev' && call.name !== 'sendto') return false;
  return call.arguments.includes('HTTP/1.1 200') && unquoted(call).includes(text);
}

/** strace puts a backslash before each quotation mark in what is written. */
function unquoted(call: SystemCall): string {
  return call.arguments.replaceAll('\\"', '"');
}

/** Where a write into a file ends. */
export function endOfWrite(call: SystemCall): number {
  const match = /, (\d+), (\d+)$/.exec(call.arguments);
  return Number(match?.[1] ?? 0) + Number(match?.[2] ?? 0);
}

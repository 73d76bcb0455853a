import assert from 'node:assert/strict';

/** One figure of /metrics. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads the figures of the service, in the text format of Prometheus. */
export async function readSamples(url: string): Promise<Sample[]> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(sampleOf);
}

function sampleOf(line: string): Sample {
  const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
  assert.ok(match, `a line of figures: ${line}`);
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of (match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value;
  }
  return { name: match[1] ?? '', labels, value: match[3] === '+Inf' ? Infinity : Number(match[3]) };
}

/** The figure of this name and these labels; undefined when there is none. */
export async function figure(
  url: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const samples = await readSamples(url);
  return samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}

/** How many files and sockets the process has open. */
export async function openFiles(url: string): Promise<number> {
  const open = await figure(url, 'process_open_fds');
  assert.ok(open !== undefined && open > 0, 'the process says how many files it has open');
  return open;
}

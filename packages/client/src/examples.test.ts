import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));

interface Example {
  readonly file: string;
  readonly code: string;
}

function examples(): Example[] {
  return readdirSync(here)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(here, file), 'utf8');
      return [...text.matchAll(/ \* ```ts\n([\s\S]*?)\n\s+\* ```/g)].map((match) => ({
        file,
        code: (match[1] ?? '').replace(/^\s+\* ?/gm, ''),
      }));
    });
}

/** Public members that have no example. */
function undocumented(): string[] {
  const classes = ['authentication', 'organizations', 'state', 'queries', 'topics', 'tasks', 'millrace'];
  return classes.flatMap((name) => {
    const text = readFileSync(join(here, `${name}.ts`), 'utf8');
    const members = text.matchAll(/(\*\/\n)? {2}(?:async )?\*?([a-z]\w*)\(\n?[^\n]*(?:\{|\()?$/gm);
    return [...members]
      .filter((match) => match[2] !== 'constructor' && match[1] === undefined)
      .map((match) => `${name}.${match[2]}`)
      .filter((member) => !/\.(if|for|while|return|switch|catch)$/.test(member));
  });
}

describe('the documentation of the client', () => {
  it('has an example for every public member', () => {
    assert.ok(examples().length >= 55, `${examples().length} examples were found`);
    assert.deepEqual(undocumented(), []);
  });

  it('has examples that compile', async () => {
    const sources = examples().map(({ file, code }) =>
      [
        `// ${file}`,
        "import { Millrace, MillraceError } from '../index.ts';",
        "const millrace = new Millrace({ endpoint: 'http://127.0.0.1:8080' });",
        `export async function example() {\n${code}\n}`,
        'export { millrace, MillraceError };',
      ].join('\n'),
    );
    assert.equal(await compile(sources), '');
  });
});

describe('the types of the client', () => {
  it('give streams that a browser pipes on', async () => {
    const source = `import type { Millrace } from '../index.ts';
export async function textsOf(millrace: Millrace): Promise<ReadableStream<string>[]> {
  const result = await millrace.queries.export('q', 'csv');
  const file = await millrace.topics.download('clicks', 'a.parquet', { onProgress: () => {} });
  return [result.pipeThrough(new TextDecoderStream()), file.pipeThrough(new TextDecoderStream())];
}
`;
    const browser = { lib: ['esnext', 'dom', 'dom.iterable'], types: [] };
    assert.equal(await compile([source], browser), '');
    assert.equal(await compile([source]), '');
  });
});

/** What the compiler has to say about some files, with the settings of the repository and others. */
async function compile(sources: readonly string[], settings: object = {}): Promise<string> {
  const directory = mkdtempSync(join(here, '.examples-'));
  try {
    const files = sources.map((_source, index) => `example-${index}.ts`);
    for (const [index, source] of sources.entries())
      writeFileSync(join(directory, `example-${index}.ts`), source);
    writeFileSync(
      join(directory, 'tsconfig.json'),
      JSON.stringify({
        extends: '../../../../tsconfig.json',
        compilerOptions: { noUnusedLocals: false, ...settings },
        include: [],
        files,
      }),
    );
    const compiler = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url));
    const { stdout } = await promisify(execFile)(compiler, ['-p', directory]).catch((error) => error);
    return stdout;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

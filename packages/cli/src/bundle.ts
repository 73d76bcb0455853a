import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, parse, relative, resolve } from 'node:path';
import { CommandError } from './command.ts';
import { isNode, type Runtime, usualRuntime } from './runtimes.ts';
import { type ZipFile, zipOf } from './zip.ts';

/** Code that is ready to be uploaded. */
export interface Bundle {
  readonly zip: Uint8Array<ArrayBuffer>;
  /** The same for the same code. */
  readonly digest: string;
  /** The handler, where the code does not say otherwise. */
  readonly handler: string;
  /** Files that went into it, to watch. */
  readonly sources: readonly string[];
}

export interface BundleOptions {
  /** What places in the code are told relative to; the working folder unless given. */
  readonly directory?: string;
  readonly runtime?: Runtime | undefined;
}

/**
 * Bundles a file of TypeScript or JavaScript with all it imports. What another runtime runs is packed as it
 * is, and so is a folder.
 */
export async function bundle(path: string, options: BundleOptions = {}): Promise<Bundle> {
  const { directory = process.cwd(), runtime = usualRuntime } = options;
  const found = await stat(path).catch(() => {
    throw new CommandError(`There is no code at ${path}.`);
  });
  const { files, sources, handler } = found.isDirectory()
    ? await packFolder(path)
    : isNode(runtime)
      ? await bundleFile(path, directory)
      : await packFile(path);
  if (files.length === 0) throw new CommandError(`The folder ${path} is empty.`);
  const zip = zipOf(files);
  const digest = createHash('sha256').update(zip).digest('hex').slice(0, 12);
  return { zip, digest, handler, sources };
}

type Packed = Pick<Bundle, 'handler' | 'sources'> & { readonly files: readonly ZipFile[] };

/** Where in the code something is. The column is counted in bytes from 0. */
interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly lineText: string;
}

/** A place as editors take it, relative to a folder. */
function placeOf({ file, line, column, lineText }: Location, from: string, directory: string): string {
  const before = Buffer.from(lineText).subarray(0, column).toString();
  return `${relative(directory, resolve(from, file))}:${line}:${[...before].length + 1}`;
}

async function bundleFile(path: string, directory: string): Promise<Packed> {
  // Read only when code is bundled: it is the largest part of this program.
  const { build } = await import('esbuild');
  const result = await build({
    entryPoints: [resolve(path)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    write: false,
    metafile: true,
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'silent',
    absWorkingDir: dirname(resolve(path)),
    // A project that has not installed the library of tasks gets the one of this program.
    nodePaths: createRequire(import.meta.url).resolve.paths('@millrace/runner') ?? [],
    // Packages that are not ES modules may ask for `require`.
    banner: {
      js: "import { createRequire as $require } from 'node:module'; const require = $require(import.meta.url);",
    },
  }).catch((error: Error & { errors?: { text: string; location?: Location | null }[] }) => {
    const lines = (error.errors ?? []).map(({ text, location }) =>
      location == null ? text : `${placeOf(location, dirname(path), directory)}: ${text}`,
    );
    throw new CommandError(`The code cannot be bundled.\n${lines.join('\n') || error.message}`);
  });
  const [output] = result.outputFiles;
  if (output === undefined) throw new CommandError(`Nothing came of bundling ${path}.`);
  return {
    handler: 'index.handler',
    files: [{ name: 'index.mjs', content: output.contents }],
    sources: Object.keys(result.metafile.inputs).map((source) => resolve(dirname(path), source)),
  };
}

async function packFile(path: string): Promise<Packed> {
  return {
    handler: `${parse(path).name}.handler`,
    files: [await zipFileOf(path, basename(path))],
    sources: [path],
  };
}

async function packFolder(folder: string): Promise<Packed> {
  const files: ZipFile[] = [];
  const sources: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    sources.push(path);
    files.push(await zipFileOf(path, relative(folder, path).replaceAll('\\', '/')));
  }
  files.sort((one, other) => (one.name < other.name ? -1 : 1));
  return { handler: 'index.handler', files, sources };
}

async function zipFileOf(path: string, name: string): Promise<ZipFile> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true)
    throw new CommandError(`${path} is not a file: links to folders cannot be packed.`);
  return { name, content: await readFile(path), executable: (found.mode & 0o111) !== 0 };
}

import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { CommandError } from './command.ts';
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

/** Bundles a file of TypeScript or JavaScript with all it imports, or packs a folder as it is. */
export async function bundle(path: string): Promise<Bundle> {
  const found = await stat(path).catch(() => {
    throw new CommandError(`There is no code at ${path}.`);
  });
  const { files, sources } = found.isDirectory() ? await packFolder(path) : await bundleFile(path);
  if (files.length === 0) throw new CommandError(`The folder ${path} is empty.`);
  const zip = zipOf(files);
  const digest = createHash('sha256').update(zip).digest('hex').slice(0, 12);
  return { zip, digest, handler: 'index.handler', sources };
}

async function bundleFile(path: string): Promise<{ files: ZipFile[]; sources: string[] }> {
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
  }).catch(
    (error: Error & { errors?: { text: string; location?: { file: string; line: number } | null }[] }) => {
      const lines = (error.errors ?? []).map(({ text, location }) =>
        location == null ? text : `${location.file}:${location.line}: ${text}`,
      );
      throw new CommandError(`The code cannot be bundled.\n${lines.join('\n') || error.message}`);
    },
  );
  const [output] = result.outputFiles;
  if (output === undefined) throw new CommandError(`Nothing came of bundling ${path}.`);
  return {
    files: [{ name: 'index.mjs', content: output.contents }],
    sources: Object.keys(result.metafile.inputs).map((source) => resolve(dirname(path), source)),
  };
}

async function packFolder(folder: string): Promise<{ files: ZipFile[]; sources: string[] }> {
  const files: ZipFile[] = [];
  const sources: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() !== true)
      throw new CommandError(`${path} is not a file: links to folders cannot be packed.`);
    const { mode } = found;
    sources.push(path);
    files.push({
      name: relative(folder, path).replaceAll('\\', '/'),
      content: await readFile(path),
      executable: (mode & 0o111) !== 0,
    });
  }
  return { files: files.sort((one, other) => (one.name < other.name ? -1 : 1)), sources };
}

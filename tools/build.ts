/**
 * Builds the packages as they are published: JavaScript and declarations in `dist`, and a manifest that
 * points there. In the repository everything runs from its sources and needs none of this.
 *
 *     node tools/build.ts [folder] [--pack]
 *
 * Each package is written to a folder of its own below the given one, `dist` unless given; with --pack they
 * are packed as well.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { pack: { type: 'boolean', default: false } },
});
const target = resolve(positionals[0] ?? join(root, 'dist'));

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

interface Package {
  readonly folder: string;
  /** The oldest Node that runs it. */
  readonly node: string;
  /** What else belongs to it, besides its code. */
  readonly others: readonly string[];
  /** Packages that only the declarations name. */
  readonly typesOf: readonly string[];
}

const packages: readonly Package[] = [
  { folder: 'contract', node: '>=20', others: [], typesOf: [] },
  { folder: 'client', node: '>=20', others: [], typesOf: ['@millrace/contract'] },
  { folder: 'runner', node: '>=20', others: [], typesOf: [] },
  { folder: 'server', node: '>=26', others: [], typesOf: [] },
  // An older Node only has to find a newer one.
  { folder: 'cli', node: '>=20', others: ['bin', 'millrace.schema.json'], typesOf: [] },
];

/** Sources that are for tests and tools. */
const unpublished = /\.(test|suite|fixture)\.ts$|^derived-files\.ts$/;

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const emitted = join(target, '.emitted');
await compile(emitted);
for (const each of packages) await assemble(each);
await rm(emitted, { recursive: true });
if (values.pack)
  for (const { folder } of packages)
    await run('npm', ['pack', '--silent', '--pack-destination', target], { cwd: join(target, folder) });

async function compile(outDir: string): Promise<void> {
  const project = join(target, 'tsconfig.json');
  const sources = packages.map(({ folder }) => join(root, 'packages', folder, 'src'));
  const options = {
    noEmit: false,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    declaration: true,
    rootDir: join(root, 'packages'),
    outDir,
    typeRoots: [join(root, 'node_modules/@types')],
  };
  const exclude = sources.flatMap((source) =>
    ['test', 'suite', 'fixture'].map((kind) => join(source, `**/*.${kind}.ts`)),
  );
  await writeFile(
    project,
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: options,
      include: sources,
      exclude,
    }),
  );
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', project], { maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: { stdout: string }) => {
      throw new Error(`The packages do not compile.\n${error.stdout}`);
    },
  );
  await rm(project);
}

async function assemble({ folder, node, others, typesOf }: Package): Promise<void> {
  const source = join(root, 'packages', folder);
  const made = join(target, folder);
  for (const path of await filesOf(join(emitted, folder, 'src'))) {
    if (unpublished.test(path.replace(/\.(d\.ts|js)$/, '.ts'))) continue;
    const text = await readFile(join(emitted, folder, 'src', path), 'utf8');
    await put(join(made, 'dist', path), path.endsWith('.d.ts') ? declaration(text) : program(text, path));
  }
  for (const path of await filesOf(join(source, 'src')))
    if (!/\.(ts|md)$/.test(path))
      await put(join(made, 'dist', path), await readFile(join(source, 'src', path)));
  for (const path of others) await cp(join(source, path), join(made, path), { recursive: true });
  await cp(join(root, 'LICENSE'), join(made, 'LICENSE'));
  const manifest: Manifest = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
  await put(
    join(made, 'package.json'),
    `${JSON.stringify(published(manifest, { node, others, typesOf }), null, 2)}\n`,
  );
}

/** The manifest as it is published: what it names is in `dist`. */
function published(manifest: Manifest, { node, others, typesOf }: Omit<Package, 'folder'>): object {
  const { private: _private, devDependencies = {}, exports, dependencies, ...rest } = manifest;
  const built = (path: string, ending: string) => path.replace(/^\.\/src\/(.*)\.ts$/, `./dist/$1${ending}`);
  const types = Object.fromEntries(typesOf.map((name) => [name, devDependencies[name] ?? '*']));
  return {
    ...rest,
    engines: { node },
    files: ['dist', ...others],
    exports: Object.fromEntries(
      Object.entries(exports).map(([name, path]) => [
        name,
        { types: built(path, '.d.ts'), default: built(path, '.js') },
      ]),
    ),
    dependencies: { ...dependencies, ...types },
  };
}

/** The compiler renames what is imported in programs, and leaves declarations to us. */
function declaration(text: string): string {
  return text.replace(/((?:from|import) ?\(?['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2');
}

/** Programs also start files by their names: threads, and processes of their own. */
function program(text: string, path: string): string {
  const renamed = text
    .replace(/(new URL\('\.[^']*)\.ts(', import\.meta\.url\))/g, '$1.js$2')
    .replace(/('|\/)main\.ts(['`])/g, '$1main.js$2');
  const left = /^(?!\s*(?:\/\/|\*)).*['"`/][\w./-]+\.ts['"`].*$/m.exec(renamed)?.[0];
  if (left !== undefined) throw new Error(`${path} names a source that is not published: ${left.trim()}`);
  return renamed;
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

async function put(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

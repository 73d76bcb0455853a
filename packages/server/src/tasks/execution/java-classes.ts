import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Host, makeReadable } from './host.ts';

const compileMilliseconds = 60_000;

/** Compiles the Java bootstrap with the compiler of the host, the first time it is needed. */
export class JavaClasses {
  readonly #host: Host;
  #compiled: Promise<string> | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The folder with the classes. */
  directory(): Promise<string> {
    this.#compiled ??= this.#compile().catch((error: unknown) => {
      this.#compiled = undefined;
      throw error;
    });
    return this.#compiled;
  }

  async #compile(): Promise<string> {
    const { java, directory, bootstraps } = this.#host;
    if (java === undefined) throw new Error('This host has no JDK.');
    const classes = join(directory, 'java');
    await mkdir(classes, { recursive: true });
    const parameters = ['-nowarn', '-d', classes, join(bootstraps, 'Bootstrap.java')];
    await new Promise<void>((resolve, reject) => {
      execFile(java.compiler, parameters, { timeout: compileMilliseconds }, (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    await makeReadable(classes);
    return classes;
  }
}

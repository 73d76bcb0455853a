/**
 * The files and folders that an archive will make. Names that one file system tells apart and another does
 * not, by case or by how accents are encoded, count as the same name: an archive must not come out
 * differently from one host to another.
 */
export class ArchiveTree {
  readonly #most: number;
  readonly #places = new Map<string, { readonly path: string; readonly isFile: boolean }>();
  readonly #folders: string[] = [];

  /** With so many files and folders at the most, the ones that are only part of a path included. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Every folder, each after the one that it is in. */
  get folders(): readonly string[] {
    return this.#folders;
  }

  /** Adds a path with its folders, or says what is in the way. */
  add(parts: readonly string[], isFile: boolean): string | undefined {
    let path = '';
    for (const [index, part] of parts.entries()) {
      path = index === 0 ? part : `${path}/${part}`;
      const wrong = this.#put(path, isFile && index === parts.length - 1);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #put(path: string, isFile: boolean): string | undefined {
    const key = path.normalize('NFC').toLowerCase().normalize('NFC');
    const there = this.#places.get(key);
    if (there === undefined) {
      if (this.#places.size >= this.#most) return 'is in more folders than an archive may have';
      this.#places.set(key, { path, isFile });
      if (!isFile) this.#folders.push(path);
      return undefined;
    }
    const other = JSON.stringify(there.path.slice(0, 100));
    if (there.path !== path) return `has a name that some systems cannot tell from ${other}`;
    if (there.isFile && isFile) return 'is there twice';
    if (there.isFile || isFile) return `is a file and a folder at once: ${other}`;
    return undefined;
  }
}

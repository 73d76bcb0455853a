import type { Routes } from '../events.ts';

/** What the messages of a topic share nearly always. */
export interface Attributes {
  readonly mediaType: string;
  readonly routes: Routes;
}

/** The form in which attributes travel and are stored: a JSON array, short and the same for equal ones. */
export function attributesText(mediaType: string, { streams, lake, store }: Routes): string {
  return JSON.stringify([mediaType, streams, lake, store]);
}

const remembered = 1_000;

/** Reads attributes back, giving the same object for the same text as long as it is remembered. */
export class AttributesReader {
  readonly #known = new Map<string, Attributes>();

  read(text: string): Attributes {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const [mediaType, streams, lake, store]: [string, string[], boolean, boolean] = JSON.parse(text);
    const attributes = { mediaType, routes: { streams, lake, store } };
    if (this.#known.size >= remembered) this.#known.clear();
    this.#known.set(text, attributes);
    return attributes;
  }
}

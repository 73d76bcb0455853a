import { keyedDigest, sameDigest } from './digest.ts';

/** The length of a keyed digest as text. */
const digestLength = 43;

/**
 * The opaque tokens with which a listing is continued. A token carries the position at which its page
 * ended, and a digest over that and a scope: whose listing it is, which one, and what was asked for. It is
 * good for the same scope only. Any node opens what another has sealed, and nothing is stored.
 */
export class PageTokens {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** A token for what follows the position, for the same scope. */
  seal(scope: readonly string[], position: string): string {
    const encoded = Buffer.from(position).toString('base64url');
    return this.#digest(scope, encoded) + encoded;
  }

  /** The position in a token; undefined when it was altered or made for another scope. */
  open(scope: readonly string[], token: string): string | undefined {
    const encoded = token.slice(digestLength);
    if (!sameDigest(this.#digest(scope, encoded), token.slice(0, digestLength))) return undefined;
    return Buffer.from(encoded, 'base64url').toString();
  }

  /** Over the encoded position, because several encodings may stand for one position. */
  #digest(scope: readonly string[], encoded: string): string {
    return keyedDigest(this.#secret, ...scope, encoded);
  }
}

/** The tokens of a person who signed in. */
export interface SessionTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** What a client proves itself with. */
export interface Credentials {
  /** The value of the header `Authorization`; undefined to send none. */
  authorization(): string | undefined;
  /**
   * Is told that the service refused the credential, and answers whether there is a newer one to try with.
   */
  renew(refused: string, signal: AbortSignal | undefined): Promise<boolean>;
}

export function apiKeyCredentials(apiKey: string): Credentials {
  return { authorization: () => `Bearer ${apiKey}`, renew: async () => false };
}

export const noCredentials: Credentials = { authorization: () => undefined, renew: async () => false };

/**
 * The session of a person. However many calls find the access token expired at the same time, it is
 * refreshed once: a refresh token is good for one use.
 */
export class SessionCredentials implements Credentials {
  readonly #refresh: (
    refreshToken: string,
    signal: AbortSignal | undefined,
  ) => Promise<SessionTokens | undefined>;
  readonly #onTokens: ((tokens: SessionTokens) => void | Promise<void>) | undefined;
  readonly #latest: (() => Promise<SessionTokens | undefined>) | undefined;
  #tokens: SessionTokens;
  #renewing: Promise<boolean> | undefined;

  constructor(
    tokens: SessionTokens,
    refresh: (refreshToken: string, signal: AbortSignal | undefined) => Promise<SessionTokens | undefined>,
    onTokens?: (tokens: SessionTokens) => void | Promise<void>,
    latest?: () => Promise<SessionTokens | undefined>,
  ) {
    this.#latest = latest;
    this.#tokens = tokens;
    this.#refresh = refresh;
    this.#onTokens = onTokens;
  }

  get tokens(): SessionTokens {
    return this.#tokens;
  }

  authorization(): string {
    return `Bearer ${this.#tokens.accessToken}`;
  }

  async renew(refused: string): Promise<boolean> {
    // Another call has refreshed it while this one was on its way.
    if (refused !== this.authorization()) return true;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renew(): Promise<boolean> {
    const latest = await this.#latest?.();
    if (latest !== undefined && latest.refreshToken !== this.#tokens.refreshToken) {
      // Somebody who shares the session has refreshed it. Using the old token again would end it for all.
      this.#tokens = latest;
      return true;
    }
    // Not ended by the signal of the call that happened to find out: others wait for it as well.
    const tokens = await this.#refresh(this.#tokens.refreshToken, undefined);
    if (tokens === undefined) return false;
    this.#tokens = { accessToken: tokens.accessToken, refreshToken: tokens.refreshToken };
    await this.#onTokens?.(this.#tokens);
    return true;
  }
}

import { Authentication } from './authentication.ts';
import {
  apiKeyCredentials,
  type Credentials,
  noCredentials,
  SessionCredentials,
  type SessionTokens,
} from './credentials.ts';
import { ApiKeys, Organizations } from './organizations.ts';
import { Queries } from './queries.ts';
import type { Scope } from './scope.ts';
import { State } from './state.ts';
import { Tasks } from './tasks.ts';
import { Topics } from './topics.ts';
import { type CallOptions, type RetryOptions, Transport } from './transport.ts';

export interface MillraceOptions {
  /** Where the service is, such as `http://127.0.0.1:8080`. */
  readonly endpoint: string;
  /** The organization of calls that do not name one. */
  readonly organization?: string | undefined;
  /** An API key. */
  readonly apiKey?: string | undefined;
  /** The tokens of a person who signed in; the access token is refreshed by itself. */
  readonly session?: SessionTokens | undefined;
  /** Is told of new tokens when the session was refreshed, to keep them. */
  readonly onTokens?: ((tokens: SessionTokens) => void | Promise<void>) | undefined;
  /**
   * Answers the tokens that were kept last, where several programs share a session. It is asked before a
   * refresh: a refresh token is good for one use, and using one again ends the session for everybody.
   */
  readonly latestTokens?: (() => Promise<SessionTokens | undefined>) | undefined;
  readonly retry?: RetryOptions | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends requests; the global `fetch` unless given. */
  readonly fetch?: typeof fetch | undefined;
}

/**
 * The client of a Millrace service.
 *
 * @example
 * ```ts
 * const shop = new Millrace({ endpoint: 'http://127.0.0.1:8080', apiKey: 'mr_...', organization: 'acme' });
 * await shop.topics.publish('clicks', { page: '/pricing' }, { key: 'user-42' });
 * for await (const row of await shop.queries.run('SELECT page, count(*) AS views FROM clicks GROUP BY ALL')) console.log(row);
 * ```
 */
export class Millrace {
  readonly authentication: Authentication;
  readonly organizations: Organizations;
  readonly keys: ApiKeys;
  readonly topics: Topics;
  readonly state: State;
  readonly tasks: Tasks;
  readonly queries: Queries;
  readonly #options: MillraceOptions;
  readonly #transport: Transport;

  constructor(options: MillraceOptions) {
    this.#options = options;
    const { endpoint, retry, headers, fetch } = options;
    const transport = new Transport({
      endpoint,
      credentials: this.#credentials(),
      retry,
      headers,
      fetch,
    });
    this.#transport = transport;
    const scope: Scope = { transport, organization: options.organization };
    this.authentication = new Authentication(transport);
    this.organizations = new Organizations(scope);
    this.keys = new ApiKeys(scope);
    this.topics = new Topics(scope);
    this.state = new State(scope);
    this.tasks = new Tasks(scope);
    this.queries = new Queries(scope);
  }

  /**
   * Resolves when the service answers.
   *
   * @example
   * ```ts
   * await millrace.ping({ signal: AbortSignal.timeout(5_000) });
   * ```
   */
  async ping(options: CallOptions = {}): Promise<void> {
    await this.#transport.anonymous().call('ping', options);
  }

  /**
   * The same client for another organization.
   *
   * @example
   * ```ts
   * const topics = await millrace.withOrganization('globex').topics.definitions();
   * ```
   */
  withOrganization(organization: string): Millrace {
    return new Millrace({ ...this.#options, organization });
  }

  /**
   * The same client for a person who signed in.
   *
   * @example
   * ```ts
   * const { result } = await millrace.authentication.signIn({ usernameOrEmail: 'ada', password: 'a long passphrase' });
   * if (result !== undefined) await millrace.withSession(result).organizations.create('acme');
   * ```
   */
  withSession(session: SessionTokens, onTokens?: MillraceOptions['onTokens']): Millrace {
    return new Millrace({ ...this.#options, apiKey: undefined, latestTokens: undefined, session, onTokens });
  }

  #credentials(): Credentials {
    const { apiKey, session, onTokens, latestTokens, endpoint, retry, headers, fetch } = this.#options;
    if (apiKey !== undefined) return apiKeyCredentials(apiKey);
    if (session === undefined) return noCredentials;
    const open = new Transport({ endpoint, credentials: noCredentials, retry, headers, fetch });
    const refresh = async (refreshToken: string) => {
      const answer = await open.call('signInRefreshToken', { body: { refreshToken } });
      return answer.result;
    };
    return new SessionCredentials(session, refresh, onTokens, latestTokens);
  }
}

import type { AnswerOf, BodyOf, HeadersOf, Operations, PathOf, QueryOf } from '@millrace/contract';
import { type Credentials, noCredentials } from './credentials.ts';
import { errorOf, MillraceError } from './millrace-error.ts';
import { type CallableId, mayRepeat, routes } from './routes.ts';

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; it then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** When and how often a call is tried again. */
export interface RetryOptions {
  /** Tries in all; 5 unless given, 1 for no second one. */
  readonly attempts?: number;
  /** The first delay, doubled each time, with jitter; 200 ms unless given. What the service asks for wins. */
  readonly firstDelayMilliseconds?: number;
  /** No delay is longer; 30 s unless given. Is the service's wish longer, the call fails at once. */
  readonly longestDelayMilliseconds?: number;
  /** Is told before every wait, so that a person who wonders can be told as well. */
  readonly onRetry?: (retry: Retry) => void;
}

/** A call that is about to be tried again. */
export interface Retry {
  /** What became of the try before. */
  readonly error: MillraceError;
  readonly delayMilliseconds: number;
}

export interface TransportOptions {
  readonly endpoint: string;
  readonly credentials: Credentials;
  readonly retry?: RetryOptions | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Sent with every request, such as a user agent. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

type Parts<Id extends CallableId> = {
  readonly path?: PathOf<Operations[Id]>;
  readonly query?: Partial<QueryOf<Operations[Id]>>;
  readonly headers?: Partial<HeadersOf<Operations[Id]>>;
};

/** A request to an operation. Raw bodies come with their media type. */
export type CallRequest<Id extends CallableId> = Parts<Id> &
  CallOptions & {
    readonly body?: BodyOf<Operations[Id]> extends Uint8Array ? never : BodyOf<Operations[Id]>;
    readonly raw?: {
      readonly mediaType: string;
      readonly content: string | Uint8Array<ArrayBuffer>;
      readonly encoding?: 'gzip';
    };
    readonly accept?: string;
    /** Whether a second try may be made when it is not known what became of the first. */
    readonly repeat?: boolean;
  };

/** What an operation answers when it succeeds. */
export type CallAnswer<Id extends CallableId> = Exclude<
  AnswerOf<Operations[Id]>['body'],
  { readonly chunks: unknown }
>;

/** Sends requests, again where that is safe, and turns answers into values or errors. */
export class Transport {
  readonly #options: TransportOptions;
  readonly #endpoint: string;
  readonly #fetch: typeof fetch;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#endpoint = options.endpoint.replace(/\/+$/, '');
    // Browsers refuse to have it called as a method of something else.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** The same without a credential, for operations that are open to all. */
  anonymous(): Transport {
    return new Transport({ ...this.#options, credentials: noCredentials });
  }

  /** Calls an operation and reads its JSON answer; undefined where it answers nothing. */
  async call<Id extends CallableId>(id: Id, request: CallRequest<Id> = {}): Promise<CallAnswer<Id>> {
    const response = await this.open(id, request);
    try {
      const text = await response.text();
      const answer = text === '' ? undefined : JSON.parse(text);
      return answer;
    } catch (error) {
      throw networkError(error, request.signal);
    }
  }

  /** Calls an operation and answers as soon as its headers are there, for bodies that are streams. */
  async open<Id extends CallableId>(id: Id, request: CallRequest<Id> = {}): Promise<Response> {
    const [method = 'GET', template = ''] = routes[id].split(' ');
    const url = `${this.#endpoint}${fill(template, request.path ?? {})}${search(request.query ?? {})}`;
    const repeat = request.repeat ?? mayRepeat(id);
    return this.#send(url, { method, ...bodyOf(request) }, request, repeat);
  }

  /** Sends to a URL that carries its own permission, such as an upload. */
  async openUrl(url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    try {
      const response = await this.#fetch(url, { ...init, ...(signal === undefined ? {} : { signal }) });
      if (!response.ok) throw await errorOf(response);
      return response;
    } catch (error) {
      throw networkError(error, signal);
    }
  }

  async #send(
    url: string,
    init: {
      readonly method: string;
      readonly body?: string | Uint8Array<ArrayBuffer>;
      readonly headers: Record<string, string>;
    },
    request: CallOptions & { readonly headers?: object; readonly accept?: string },
    repeat: boolean,
  ): Promise<Response> {
    const { attempts = 5, longestDelayMilliseconds = 30_000, onRetry } = this.#options.retry ?? {};
    let renewals = 0;
    for (let attempt = 1; ; attempt += 1) {
      request.signal?.throwIfAborted();
      const authorization = this.#options.credentials.authorization();
      const failed = await this.#try(url, init, request, authorization);
      if (failed instanceof Response) return failed;
      // Twice: what somebody else has kept may be too old as well.
      if (failed.status === 401 && authorization !== undefined && renewals < 2) {
        renewals += 1;
        if (await this.#options.credentials.renew(authorization, request.signal)) continue;
      }
      const worthIt = failed.status === 429 || failed.status === 503 || (failed.status === 0 && repeat);
      const delay = this.#delay(attempt, failed.retryAfterSeconds);
      if (!worthIt || attempt >= attempts || delay > longestDelayMilliseconds) throw failed;
      onRetry?.({ error: failed, delayMilliseconds: delay });
      await pause(delay, request.signal);
    }
  }

  /** One try. What may be tried again is answered, everything else is thrown. */
  async #try(
    url: string,
    init: {
      readonly method: string;
      readonly body?: string | Uint8Array<ArrayBuffer>;
      readonly headers: Record<string, string>;
    },
    request: CallOptions & { readonly headers?: object; readonly accept?: string },
    authorization: string | undefined,
  ): Promise<Response | MillraceError> {
    try {
      const response = await this.#fetch(url, {
        method: init.method,
        ...(init.body === undefined ? {} : { body: init.body }),
        headers: {
          ...this.#options.headers,
          ...init.headers,
          ...Object.fromEntries(
            Object.entries(request.headers ?? {}).map(([name, value]) => [name, String(value)]),
          ),
          ...(request.accept === undefined ? {} : { accept: request.accept }),
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(request.signal === undefined ? {} : { signal: request.signal }),
      });
      return response.ok ? response : await errorOf(response);
    } catch (error) {
      request.signal?.throwIfAborted();
      return networkError(error, request.signal);
    }
  }

  #delay(attempt: number, retryAfterSeconds: number | undefined): number {
    const { firstDelayMilliseconds = 200, longestDelayMilliseconds = 30_000 } = this.#options.retry ?? {};
    const growing = Math.min(firstDelayMilliseconds * 2 ** (attempt - 1), longestDelayMilliseconds);
    const jittered = growing * (0.5 + Math.random() / 2);
    return retryAfterSeconds === undefined ? jittered : Math.max(jittered, retryAfterSeconds * 1000);
  }
}

function bodyOf(request: {
  readonly body?: unknown;
  readonly raw?: {
    readonly mediaType: string;
    readonly content: string | Uint8Array<ArrayBuffer>;
    readonly encoding?: 'gzip';
  };
}): { body?: string | Uint8Array<ArrayBuffer>; headers: Record<string, string> } {
  const { raw } = request;
  if (raw !== undefined) {
    const encoding = raw.encoding === undefined ? {} : { 'content-encoding': raw.encoding };
    return { body: raw.content, headers: { 'content-type': raw.mediaType, ...encoding } };
  }
  if (request.body === undefined) return { headers: {} };
  return { body: JSON.stringify(request.body), headers: { 'content-type': 'application/json' } };
}

function fill(template: string, values: object): string {
  const named = new Map(Object.entries(values));
  return template.replace(/\{(\w+)\}/g, (_match, name: string) => {
    const value: unknown = named.get(name);
    if (typeof value !== 'string' || value === '')
      throw new TypeError(
        `The call needs a ${name}.${name === 'organizationName' ? ' Give the client an organization.' : ''}`,
      );
    return encodeURIComponent(value);
  });
}

function search(values: object): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

function networkError(error: unknown, signal: AbortSignal | undefined): MillraceError {
  if (error instanceof MillraceError) return error;
  signal?.throwIfAborted();
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new MillraceError(
    { code: 'NETWORK', status: 0, detail: `The service could not be reached: ${reason}` },
    { cause: error },
  );
}

/** Waits, unless the signal ends it. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, milliseconds);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', end, { once: true });
  });
}

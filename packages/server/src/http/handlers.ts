import type {
  AnswerOf,
  BodyOf,
  HeadersOf,
  OperationDefinition,
  OperationId,
  Operations,
  PathOf,
  QueryOf,
  Role,
  StreamedBody,
} from '@millrace/contract';
import type { Caller } from '../identity/authenticator.ts';
import type { Visitor } from '../identity/identity.ts';
import type { Organization } from '../organizations/organization-store.ts';
import type { Problem } from '../platform/problem.ts';

/** Who calls an operation, as precisely as its access rule allows to say. */
export type CallerOf<O extends OperationDefinition> = O['access'] extends { readonly kind: 'organization' }
  ? { readonly caller: Caller; readonly organization: Organization; readonly role: Role }
  : O['access'] extends { readonly kind: 'account'; readonly apiKey: false }
    ? { readonly caller: Caller & { kind: 'session' } }
    : O['access'] extends { readonly kind: 'account' }
      ? { readonly caller: Caller }
      : Record<never, never>;

/** A request to an operation, parsed and allowed. */
export type Call<O extends OperationDefinition> = {
  readonly path: PathOf<O>;
  readonly query: QueryOf<O>;
  readonly headers: HeadersOf<O>;
  readonly body: BodyOf<O>;
  readonly visitor: Visitor;
  /** What the body of an operation with a raw body is said to be. */
  readonly content: ContentHeaders;
  /** The media types that the caller would take, as it sent them. */
  readonly accept: string | undefined;
  /** Asks again whether the caller may do this: for answers that outlast a right. */
  readonly stillAllowed: () => Promise<boolean>;
  /** Aborted when the service stops: an answer that has no end must end then. */
  readonly stopping: AbortSignal;
} & CallerOf<O>;

export interface ContentHeaders {
  readonly mediaType: string | undefined;
  readonly encoding: string | undefined;
}

export type Handler<O extends OperationDefinition> = (call: Call<O>) => Promise<AnswerOf<O> | Problem>;

/** A request to a task's own endpoint, and its answer, are not ours to shape: it has a route of its own. */
export const apartOperation = 'taskEndpoint' satisfies OperationId;

/** A handler for each operation that is available. Leaving one out does not compile. */
export type Handlers = {
  readonly [Id in Exclude<OperationId, typeof apartOperation>]: Handler<Operations[Id]>;
};

/** The handlers of one area. */
export type HandlersOf<Ids extends keyof Handlers> = Pick<Handlers, Ids>;

/** Answers with something that is sent while it is made, as a file of some name where one is given. */
export function stream(
  mediaType: string,
  chunks: AsyncIterable<string | Uint8Array>,
  fileName: string | undefined = undefined,
) {
  return { status: 200, body: new Stream(mediaType, chunks, fileName) } as const;
}

/** Told from a JSON body by its class. */
export class Stream implements StreamedBody {
  readonly mediaType: string;
  readonly chunks: AsyncIterable<string | Uint8Array>;
  readonly fileName: string | undefined;

  constructor(
    mediaType: string,
    chunks: AsyncIterable<string | Uint8Array>,
    fileName: string | undefined = undefined,
  ) {
    this.mediaType = mediaType;
    this.chunks = chunks;
    this.fileName = fileName;
  }
}

/** An answer without a body. */
export const done = { status: 200, body: undefined } as const;

export function answer<Body>(body: Body): { readonly status: 200; readonly body: Body } {
  return { status: 200, body };
}

/** The account that a caller acts for; undefined for the key of a task. */
export function accountOf(caller: Caller): string | undefined {
  return caller.kind === 'key' ? caller.key.ownerAccountId : caller.accountId;
}

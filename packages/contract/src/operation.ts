import type { Static, TObject, TSchema } from 'typebox';
import type { ProblemCode } from './problems.ts';

/** What a member of an organization may do, lowest first; each role includes those before it. */
export const roles = ['VIEWER', 'MEMBER', 'ADMIN'] as const;
export type Role = (typeof roles)[number];

/** Whether a role includes another. */
export function roleIncludes(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** Who may call an operation. */
export type Access =
  /** Anybody, without a credential. */
  | { readonly kind: 'public' }
  /** A person with an account. `apiKey` says whether an unrestricted API key may stand in for the person. */
  | { readonly kind: 'account'; readonly apiKey: boolean }
  /** A member of the organization in the path, or an API key of it. */
  | {
      readonly kind: 'organization';
      readonly role: Role;
      /** An API key counts as at most this role here, whatever its owner's role is. */
      readonly apiKeyRole?: Role;
      /** A key with a queueWhitelist may call this for the topics on its list, and nothing else. */
      readonly restrictedKey?: true;
      /** A task's own key may call this: to publish to its outputs, or for state. */
      readonly taskKey?: 'outputs' | 'state';
    }
  /** Decided by how the task was deployed: public, or members only. */
  | { readonly kind: 'deployment' };

export type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | 'ANY';

/** A body that is not one JSON document of a known shape. */
export interface RawBody {
  readonly raw: true;
  readonly description: string;
  /** Media types accepted; the single entry `any` accepts every one. */
  readonly mediaTypes: readonly string[];
}

export interface JsonBody {
  readonly schema: TSchema;
  /** The body may be left out, and then counts as an empty object. */
  readonly optional?: true;
}

export interface OperationResponse {
  readonly description: string;
  /** The JSON body; left out when the answer is empty or of another media type. */
  readonly schema?: TSchema;
  /** Set when the answer is no JSON document. */
  readonly mediaTypes?: readonly string[];
}

export interface OperationExample {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly response?: unknown;
}

/** One operation of the service, as data. Everything else about the interface is derived from these. */
export interface OperationDefinition {
  readonly method: Method;
  /** With `{name}` for a path parameter and a last `*` for the rest of the path. */
  readonly path: string;
  readonly group: OperationGroup;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  readonly parameters?: {
    readonly path?: TObject;
    readonly query?: TObject;
    readonly headers?: TObject;
  };
  readonly body?: JsonBody | RawBody;
  readonly responses: { readonly [status: number]: OperationResponse };
  /** The problems that are particular to this operation; those of authentication, validation and limits go without saying. */
  readonly problems?: readonly ProblemCode[];
  readonly limits?: { readonly bodyBytes?: number };
  readonly example: OperationExample;
}

export type Operation<Id extends string = string> = OperationDefinition & { readonly id: Id };

export const operationGroups = [
  'Authentication',
  'Organizations',
  'API keys',
  'Tasks',
  'Topics',
  'Publishing',
  'State',
  'Query',
  'Service',
] as const;
export type OperationGroup = (typeof operationGroups)[number];

/** Gives each operation of a record its key as id, and keeps the exact types. */
export function defineOperations<const Definitions extends { readonly [id: string]: OperationDefinition }>(
  definitions: Definitions,
): { readonly [Id in keyof Definitions & string]: Definitions[Id] & { readonly id: Id } } {
  return Object.fromEntries(
    Object.entries(definitions).map(([id, definition]) => [id, { id, ...definition }]),
  ) as { readonly [Id in keyof Definitions & string]: Definitions[Id] & { readonly id: Id } };
}

type ParametersOf<O extends OperationDefinition> = O extends { readonly parameters: infer P } ? P : object;

type StaticOf<Holder, Key extends string> = Holder extends { readonly [K in Key]: infer S extends TSchema }
  ? Static<S>
  : Record<never, never>;

/** The parameters of an operation's path, parsed. */
export type PathOf<O extends OperationDefinition> = StaticOf<ParametersOf<O>, 'path'>;
/** The parameters of an operation's query, parsed. */
export type QueryOf<O extends OperationDefinition> = StaticOf<ParametersOf<O>, 'query'>;
/** The declared headers of an operation, by lower-case name. */
export type HeadersOf<O extends OperationDefinition> = StaticOf<ParametersOf<O>, 'headers'>;
/** The body of an operation: its JSON document, the bytes of a raw one, or nothing. */
export type BodyOf<O extends OperationDefinition> = O extends { readonly body: infer B }
  ? B extends { readonly schema: infer S extends TSchema }
    ? Static<S>
    : Uint8Array
  : undefined;

/** A body that is no JSON document and is sent while it is made. */
export interface StreamedBody {
  readonly mediaType: string;
  readonly chunks: AsyncIterable<string | Uint8Array>;
}

type AnswerBody<Response> = Response extends { readonly schema: infer S extends TSchema }
  ? Response extends { readonly mediaTypes: readonly string[] }
    ? Static<S> | StreamedBody
    : Static<S>
  : Response extends { readonly mediaTypes: readonly string[] }
    ? StreamedBody
    : undefined;

/** An answer of an operation: one of its statuses with the body that goes with it. */
export type AnswerOf<O extends OperationDefinition> = {
  [Status in keyof O['responses'] & number]: {
    readonly status: Status;
    readonly body: AnswerBody<O['responses'][Status]>;
  };
}[keyof O['responses'] & number];

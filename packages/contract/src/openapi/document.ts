import type { Access } from '../operation.ts';
import type { ProblemCode } from '../problems.ts';

/** The part of OpenAPI 3.1 that the contract needs, as types. */

export interface Reference {
  readonly $ref: string;
}

export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

export interface OpenApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface OpenApiMediaType {
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

export type OpenApiContent = Readonly<Record<string, OpenApiMediaType>>;

export interface OpenApiRequestBody {
  readonly description?: string;
  readonly required: boolean;
  readonly content: OpenApiContent;
}

export interface OpenApiHeader {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface OpenApiResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: OpenApiContent;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: OpenApiRequestBody;
  readonly responses: Readonly<Record<string, OpenApiResponse | Reference>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /** Who may call, exactly as the contract says it. */
  readonly 'x-millrace-access': Access;
  /** Which codes of the shared problem responses this operation may give. */
  readonly 'x-millrace-problems': readonly ProblemCode[];
}

export type OpenApiMethod = 'get' | 'put' | 'post' | 'patch' | 'delete';
export type OpenApiPath = { readonly [Method in OpenApiMethod]?: OpenApiOperation };

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: {
    readonly title: string;
    readonly summary: string;
    readonly description: string;
    readonly version: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, OpenApiPath>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, OpenApiResponse>>;
    readonly headers: Readonly<Record<string, OpenApiHeader>>;
    readonly securitySchemes: Readonly<
      Record<string, { readonly type: 'http'; readonly scheme: string; readonly description: string }>
    >;
  };
}

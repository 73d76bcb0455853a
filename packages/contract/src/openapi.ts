import type { TObject, TSchema } from 'typebox';
import { applicableProblems } from './applicable-problems.ts';
import { groupDescriptions } from './groups.ts';
import type { Limits } from './limits.ts';
import type {
  OpenApiContent,
  OpenApiDocument,
  OpenApiMediaType,
  OpenApiMethod,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiPath,
  OpenApiRequestBody,
  OpenApiResponse,
  Reference,
} from './openapi/document.ts';
import {
  headerComponents,
  Problem,
  problemResponseReference,
  problemResponses,
  rateLimitHeaders,
  requestIdHeader,
  statusesOf,
} from './openapi/problem-responses.ts';
import { type SchemaWriter, schemaWriter } from './openapi/schemas.ts';
import { type Access, type Operation, operationGroups } from './operation.ts';

/** What documentation needs of a contract; every `Contract` is one. */
export interface ContractDescription {
  readonly limits: Limits;
  readonly types: Readonly<Record<string, TSchema>>;
  readonly operations: Readonly<Record<string, Operation>>;
}

type ExampleValues = Readonly<Record<string, string | number>>;

const methodsOfAny: readonly OpenApiMethod[] = ['get', 'put', 'post', 'patch', 'delete'];
const methods = {
  GET: ['get'],
  PUT: ['put'],
  POST: ['post'],
  PATCH: ['patch'],
  DELETE: ['delete'],
  ANY: methodsOfAny,
} as const satisfies Record<Operation['method'], readonly OpenApiMethod[]>;

/** The path of an operation as OpenAPI writes it: the rest of a path is a parameter as well. */
export function openApiPath(path: string): string {
  return path.replace('*', '{path}');
}

function textOf(schema: unknown, keyword: 'title' | 'description'): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const value: unknown = Reflect.get(schema, keyword);
  return typeof value === 'string' ? value : undefined;
}

function parametersIn(
  place: OpenApiParameter['in'],
  declared: TObject | undefined,
  examples: ExampleValues,
  writer: SchemaWriter,
): readonly OpenApiParameter[] {
  if (declared === undefined) return [];
  const required: readonly string[] = declared.required ?? [];
  return Object.entries(declared.properties).map(([key, schema]) => {
    const name = place === 'header' ? (textOf(schema, 'title') ?? key) : key;
    const description = textOf(schema, 'description');
    const example = examples[name];
    const { title: _title, description: _description, ...written } = writer.write(schema);
    return {
      name,
      in: place,
      required: place === 'path' || required.includes(key),
      ...(description === undefined ? {} : { description }),
      schema: written,
      ...(example === undefined ? {} : { example }),
    };
  });
}

function parametersOf(operation: Operation, writer: SchemaWriter): readonly OpenApiParameter[] {
  const { parameters, example } = operation;
  const rest: readonly OpenApiParameter[] = operation.path.includes('*')
    ? [
        {
          name: 'path',
          in: 'path',
          required: true,
          description: 'The rest of the path; it may contain slashes.',
          schema: { type: 'string' },
          ...(example.path?.['*'] === undefined ? {} : { example: example.path['*'] }),
        },
      ]
    : [];
  return [
    ...parametersIn('path', parameters?.path, example.path ?? {}, writer),
    ...rest,
    ...parametersIn('query', parameters?.query, example.query ?? {}, writer),
    ...parametersIn('header', parameters?.headers, example.headers ?? {}, writer),
  ];
}

function exampleOfMediaType(mediaType: string, body: unknown): OpenApiMediaType {
  if (body === undefined) return {};
  if (mediaType !== 'application/x-ndjson' || !Array.isArray(body)) return { example: body };
  return { example: body.map((line) => `${JSON.stringify(line)}\n`).join('') };
}

function requestBodyOf(
  operation: Operation,
  method: OpenApiMethod,
  writer: SchemaWriter,
): OpenApiRequestBody | undefined {
  const { body, example } = operation;
  if (body === undefined) return undefined;
  if ('schema' in body) {
    const content = {
      schema: writer.write(body.schema),
      ...exampleOfMediaType('application/json', example.body),
    };
    return { required: body.optional !== true, content: { 'application/json': content } };
  }
  // A body means nothing in these two methods, and tools complain about one.
  if (operation.method === 'ANY' && (method === 'get' || method === 'delete')) return undefined;
  const mediaTypes = body.mediaTypes.flatMap((mediaType) =>
    mediaType === 'any' ? [...(example.body === undefined ? [] : ['application/json']), '*/*'] : [mediaType],
  );
  return {
    description: body.description,
    required: operation.method !== 'ANY',
    content: Object.fromEntries(
      mediaTypes.map((mediaType) => [
        mediaType,
        mediaType === '*/*' ? {} : exampleOfMediaType(mediaType, example.body),
      ]),
    ),
  };
}

function isRateLimited(access: Access): boolean {
  return access.kind === 'organization' || access.kind === 'deployment';
}

function successResponses(
  operation: Operation,
  writer: SchemaWriter,
): readonly (readonly [string, OpenApiResponse])[] {
  const headers = { ...requestIdHeader, ...(isRateLimited(operation.access) ? rateLimitHeaders : {}) };
  return Object.entries(operation.responses).map(([status, response]) => {
    const content: Record<string, OpenApiMediaType> = {};
    if (response.schema !== undefined) {
      content['application/json'] = {
        schema: writer.write(response.schema),
        ...exampleOfMediaType('application/json', operation.example.response),
      };
    }
    for (const mediaType of response.mediaTypes ?? []) content[mediaType] ??= {};
    const described: OpenApiContent | undefined = Object.keys(content).length > 0 ? content : undefined;
    return [
      status,
      {
        description: response.description,
        headers,
        ...(described === undefined ? {} : { content: described }),
      },
    ];
  });
}

function securityOf(access: Access): OpenApiOperation['security'] {
  if (access.kind === 'public') return [];
  return access.kind === 'deployment' ? [{ bearer: [] }, {}] : [{ bearer: [] }];
}

function describeOperation(
  operation: Operation,
  method: OpenApiMethod,
  writer: SchemaWriter,
): OpenApiOperation {
  const parameters = parametersOf(operation, writer);
  const requestBody = requestBodyOf(operation, method, writer);
  const problems = applicableProblems(operation);
  const responses: Record<string, OpenApiResponse | Reference> = Object.fromEntries(
    successResponses(operation, writer),
  );
  for (const status of statusesOf(problems)) responses[status] = problemResponseReference(status);
  const suffix = operation.method === 'ANY' ? `${method.charAt(0).toUpperCase()}${method.slice(1)}` : '';
  return {
    operationId: `${operation.id}${suffix}`,
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    tags: [operation.group],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses,
    security: securityOf(operation.access),
    'x-millrace-access': operation.access,
    'x-millrace-problems': problems,
  };
}

/** The contract as an OpenAPI 3.1 document. The same contract and options give the same document, in order. */
export function openApiDocument(
  contract: ContractDescription,
  options: { readonly serverUrl?: string; readonly version: string },
): OpenApiDocument {
  const writer = schemaWriter({ ...contract.types, Problem });
  const operations = Object.values(contract.operations);
  const paths: Record<string, OpenApiPath> = {};
  for (const operation of operations) {
    const path = openApiPath(operation.path);
    for (const method of methods[operation.method]) {
      paths[path] = { ...paths[path], [method]: describeOperation(operation, method, writer) };
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      summary: "An organization's data service.",
      description:
        'Publish events over HTTP, run your own code on them, keep keyed state, and query everything with SQL. The reference for people is at /docs.',
      version: options.version,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: options.serverUrl ?? '/' }],
    tags: operationGroups.map((name) => ({ name, description: groupDescriptions[name] })),
    paths,
    components: {
      schemas: writer.components,
      responses: problemResponses(new Set(operations.flatMap(applicableProblems))),
      headers: headerComponents,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An access token of signIn, or an API key. The schemes `cognito <access token>` and `apikey <key>` are accepted as well.',
        },
      },
    },
  };
}

import { isUtf8 } from 'node:buffer';
import { type EndpointRequest, headersOf } from './endpoint-request.ts';
import { hopByHop } from './hop-by-hop.ts';

/** A request as a task sees it: the event of a function URL, payload version 2.0. */
export interface FunctionUrlEvent {
  readonly version: '2.0';
  readonly routeKey: '$default';
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly cookies?: string[];
  readonly headers: Record<string, string>;
  readonly queryStringParameters?: Record<string, string>;
  readonly requestContext: {
    readonly accountId: string;
    readonly apiId: string;
    readonly domainName: string;
    readonly domainPrefix: string;
    readonly http: {
      readonly method: string;
      readonly path: string;
      readonly protocol: string;
      readonly sourceIp: string;
      readonly userAgent: string;
    };
    readonly requestId: string;
    readonly routeKey: '$default';
    readonly stage: '$default';
    readonly time: string;
    readonly timeEpoch: number;
  };
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}

export interface EventOptions {
  /** Whether anybody may call, as against members of the organization only. */
  readonly isPublic: boolean;
  /** Whether the task may not see the header Authorization, because it holds a credential for the service. */
  readonly withholdAuthorization: boolean;
}

/** Headers that are ours to set, whatever the caller says. */
const ours = new Set(['x-forwarded-for', 'x-forwarded-port', 'x-forwarded-proto', 'forwarded', 'expect']);

/**
 * The event for a request. Path and query are passed on as they were sent; text is passed on as text where
 * its media type says that it is text and its bytes agree, and everything else in base64, so no byte of a
 * body is ever changed.
 */
export function toFunctionUrlEvent(request: EndpointRequest, options: EventOptions): FunctionUrlEvent {
  const headers = headersOf(request);
  const domainName = hostOf(headers.get('host')?.[0] ?? 'localhost');
  const cookies = cookiesOf(headers.get('cookie'));
  const parameters = parametersOf(request.queryString);
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: request.path,
    rawQueryString: request.queryString,
    ...(cookies === undefined ? {} : { cookies }),
    headers: passedHeaders(request, headers, options),
    ...(parameters === undefined ? {} : { queryStringParameters: parameters }),
    requestContext: {
      accountId: options.isPublic ? 'anonymous' : request.organization.name,
      apiId: request.taskId,
      domainName,
      domainPrefix: domainName.split('.', 1)[0] ?? domainName,
      http: {
        method: request.method,
        path: request.path,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.sourceIp,
        userAgent: headers.get('user-agent')?.[0] ?? '',
      },
      requestId: request.requestId,
      routeKey: '$default',
      stage: '$default',
      time: logTime(request.receivedAt),
      timeEpoch: request.receivedAt,
    },
    ...bodyOf(request.body, headers),
  };
}

function passedHeaders(
  request: EndpointRequest,
  headers: ReadonlyMap<string, readonly string[]>,
  { withholdAuthorization }: EventOptions,
): Record<string, string> {
  const dropped = hopByHop(headers.get('connection')?.join(','));
  const passed = new Map<string, string>();
  for (const [name, values] of headers) {
    if (dropped.has(name) || ours.has(name) || name === 'cookie') continue;
    if (name === 'authorization' && withholdAuthorization) continue;
    passed.set(name, values.join(','));
  }
  const isSecure = request.scheme === 'https';
  const port = /:(\d+)$/.exec(headers.get('host')?.[0] ?? '')?.[1];
  passed.set('x-forwarded-for', request.sourceIp);
  passed.set('x-forwarded-proto', request.scheme);
  passed.set('x-forwarded-port', port ?? (isSecure ? '443' : '80'));
  // A body may have come without a length.
  if (request.body.byteLength > 0) passed.set('content-length', String(request.body.byteLength));
  return Object.fromEntries(passed);
}

function cookiesOf(headers: readonly string[] | undefined): string[] | undefined {
  const cookies = headers?.flatMap((header) => header.split(';')).map((cookie) => cookie.trim());
  const given = cookies?.filter((cookie) => cookie !== '');
  return given === undefined || given.length === 0 ? undefined : given;
}

/** Each name once, its values decoded and joined. */
function parametersOf(queryString: string): Record<string, string> | undefined {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryString)) {
    const before = parameters.get(name);
    parameters.set(name, before === undefined ? value : `${before},${value}`);
  }
  return parameters.size === 0 ? undefined : Object.fromEntries(parameters);
}

function bodyOf(
  body: Uint8Array,
  headers: ReadonlyMap<string, readonly string[]>,
): Pick<FunctionUrlEvent, 'body' | 'isBase64Encoded'> {
  if (body.byteLength === 0) return { isBase64Encoded: false };
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const encoding = headers.get('content-encoding')?.join(',').trim().toLowerCase() ?? 'identity';
  const isText = encoding === 'identity' && isTextual(headers.get('content-type')?.[0]) && isUtf8(bytes);
  return isText
    ? { body: bytes.toString('utf8'), isBase64Encoded: false }
    : { body: bytes.toString('base64'), isBase64Encoded: true };
}

/** The media types that a function URL passes on as text; forms and what has no type are not among them. */
export function isTextual(contentType: string | undefined): boolean {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return /^text\/|^application\/(json|xml|javascript)$|^[^/]+\/[^/]+\+(json|xml)$/.test(mediaType);
}

function hostOf(host: string): string {
  return host.replace(/:\d+$/, '');
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const;

/** As in a web server's log: `12/Mar/2020:19:03:58 +0000`. */
function logTime(milliseconds: number): string {
  const time = new Date(milliseconds);
  const [, , day = ''] = time.toISOString().slice(0, 10).split('-');
  const clock = time.toISOString().slice(11, 19);
  return `${day}/${months[time.getUTCMonth()]}/${time.getUTCFullYear()}:${clock} +0000`;
}

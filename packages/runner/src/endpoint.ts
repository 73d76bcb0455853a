import type { TaskContext } from './context.ts';

/** A call of a task's endpoint, as the service sends it. */
export interface EndpointEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly cookies?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: { readonly http: { readonly method: string; readonly sourceIp: string } };
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}

export interface EndpointAnswer {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

/**
 * A handler of HTTP requests in the terms of the web: it gets a `Request` and answers a `Response`. The
 * path of the request is the one below the endpoint of the task.
 *
 * @example
 * ```ts
 * export const handler = endpointHandler(async (request) => {
 *   const { pathname } = new URL(request.url);
 *   return Response.json({ hello: pathname });
 * });
 * ```
 */
export function endpointHandler(
  handle: (request: Request, context: TaskContext) => Promise<Response> | Response,
): (event: EndpointEvent, context: TaskContext) => Promise<EndpointAnswer> {
  return async (event, context) => answerOf(await handle(requestOf(event), context));
}

function requestOf(event: EndpointEvent): Request {
  const { method } = event.requestContext.http;
  const query = event.rawQueryString === '' ? '' : `?${event.rawQueryString}`;
  const headers = new Headers(Object.entries(event.headers));
  if (event.cookies !== undefined && event.cookies.length > 0)
    headers.set('cookie', event.cookies.join('; '));
  const host = event.headers.host ?? 'endpoint.invalid';
  const hasBody = method !== 'GET' && method !== 'HEAD' && event.body !== undefined;
  return new Request(`http://${host}${event.rawPath}${query}`, {
    method,
    headers,
    ...(hasBody ? { body: bytesOf(event.body ?? '', event.isBase64Encoded) } : {}),
  });
}

function bytesOf(body: string, isBase64Encoded: boolean): string | Uint8Array<ArrayBuffer> {
  return isBase64Encoded ? Uint8Array.from(atob(body), (character) => character.charCodeAt(0)) : body;
}

async function answerOf(response: Response): Promise<EndpointAnswer> {
  const cookies = response.headers.getSetCookie();
  const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'set-cookie'));
  const bytes = new Uint8Array(await response.arrayBuffer());
  const isText = /^(text\/|application\/(json|javascript|xml|[\w.+-]+\+(json|xml)))/.test(
    headers['content-type'] ?? 'text/',
  );
  return {
    statusCode: response.status,
    headers,
    ...(cookies.length === 0 ? {} : { cookies }),
    body: isText ? new TextDecoder().decode(bytes) : base64Of(bytes),
    isBase64Encoded: !isText,
  };
}

function base64Of(bytes: Uint8Array): string {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000)
    text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}

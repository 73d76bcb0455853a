import { type EndpointRequest, headerOf } from './endpoint-request.ts';
import type { EndpointAnswer } from './function-url-answer.ts';

/** Which pages of other origins may call an endpoint, as it was deployed. `*` in a list stands for all. */
export interface Cors {
  readonly allowOrigins: readonly string[];
  readonly allowMethods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  readonly allowCredentials: boolean;
  /** Seconds. */
  readonly maxAge: number;
}

type Headers = [name: string, value: string][];

/**
 * The answer to the question that a browser asks before a call from another origin: whoever has deployed
 * rules for that is not asked again, and the browser sends no credential with it. Undefined for any other
 * request. A call that is not allowed is answered too, without the headers that would allow it.
 */
export function preflightAnswer(
  request: Pick<EndpointRequest, 'method' | 'rawHeaders'>,
  cors: Cors | undefined,
): EndpointAnswer | undefined {
  const origin = headerOf(request, 'origin');
  const method = headerOf(request, 'access-control-request-method');
  if (cors === undefined || request.method !== 'OPTIONS' || origin === undefined || method === undefined) {
    return undefined;
  }
  const asked = headerOf(request, 'access-control-request-headers') ?? '';
  const headers: Headers = [
    ['vary', 'origin, access-control-request-method, access-control-request-headers'],
    ['cache-control', 'no-store'],
  ];
  const allowed = originOf(cors, origin);
  if (allowed !== undefined && allowsMethod(cors, method)) {
    headers.push(['access-control-allow-origin', allowed], ...credentials(cors));
    headers.push(['access-control-allow-methods', listed(cors.allowMethods, method)]);
    const names = listed(cors.allowHeaders, asked);
    if (names !== '') headers.push(['access-control-allow-headers', names]);
    headers.push(['access-control-max-age', String(cors.maxAge)]);
  }
  return { status: 204, headers, body: Buffer.alloc(0) };
}

/** The headers that let a page of another origin read an answer. */
export function corsHeaders(request: Pick<EndpointRequest, 'rawHeaders'>, cors: Cors): Headers {
  const origin = headerOf(request, 'origin');
  const allowed = origin === undefined ? undefined : originOf(cors, origin);
  const headers: Headers = [['vary', 'origin']];
  if (allowed === undefined) return headers;
  headers.push(['access-control-allow-origin', allowed], ...credentials(cors));
  const exposed = cors.exposeHeaders.join(', ');
  if (exposed !== '') headers.push(['access-control-expose-headers', exposed]);
  return headers;
}

/** Browsers take `*` for no call with a credential, so the origin is named where those are allowed. */
function originOf({ allowOrigins, allowCredentials }: Cors, origin: string): string | undefined {
  if (allowOrigins.includes('*')) return allowCredentials ? origin : '*';
  const isListed = allowOrigins.some((allowed) => allowed.toLowerCase() === origin.toLowerCase());
  return isListed ? origin : undefined;
}

function allowsMethod({ allowMethods }: Cors, method: string): boolean {
  return allowMethods.includes('*') || allowMethods.some((allowed) => allowed.toUpperCase() === method);
}

function listed(allowed: readonly string[], asked: string): string {
  return allowed.includes('*') ? asked : allowed.join(', ');
}

function credentials({ allowCredentials }: Cors): Headers {
  return allowCredentials ? [['access-control-allow-credentials', 'true']] : [];
}

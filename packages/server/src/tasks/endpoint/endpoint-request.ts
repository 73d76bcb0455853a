import type { OrganizationReference } from '../version.ts';

/** A request to the endpoint of a task, with nothing of it decoded yet. */
export interface EndpointRequest {
  readonly organization: OrganizationReference;
  readonly taskId: string;
  readonly method: string;
  /** What follows the part of the path that names the task, as it was sent: `/` at least. */
  readonly path: string;
  /** What follows the question mark, as it was sent; empty without one. */
  readonly queryString: string;
  /** Names and values by turns, as Node has them. */
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
  /** As in `1.1`. */
  readonly httpVersion: string;
  readonly scheme: 'http' | 'https';
  readonly sourceIp: string;
  readonly requestId: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

const ofTask = /^\/v1\/organization\/[^/?]+\/endpoint\/[^/?]+(\/[^?]*)?(?:\?(.*))?$/s;

/** The task's own part of the URL of a request, as it was sent. */
export function endpointTarget(url: string): Pick<EndpointRequest, 'path' | 'queryString'> | undefined {
  const match = ofTask.exec(url);
  if (match === null) return undefined;
  return { path: match[1] ?? '/', queryString: match[2] ?? '' };
}

/** The headers with names in lower case and the values of each in the order in which they were sent. */
export function headersOf({ rawHeaders }: Pick<EndpointRequest, 'rawHeaders'>): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    const values = headers.get(name) ?? [];
    values.push(rawHeaders[index + 1] ?? '');
    headers.set(name, values);
  }
  return headers;
}

/** The one value of a header, its values joined where it was sent several times. */
export function headerOf(request: Pick<EndpointRequest, 'rawHeaders'>, name: string): string | undefined {
  return headersOf(request).get(name)?.join(',');
}

import type { IncomingHttpHeaders } from 'node:http';
import type { OperationId } from '@millrace/contract';
import type { Arrival } from '../arrival.ts';
import { checkMediaType } from '../body.ts';
import type { OperationRoute } from '../route.ts';
import { pathReader, readQuery } from './address.ts';

/** They take a body by POST and answer with JSON. */
const operations: readonly OperationId[] = [
  'message',
  'getState',
  'listState',
  'upsertState',
  'incrementState',
];

/** Where a path leads that belongs to the lanes. */
export interface Destination {
  readonly route: OperationRoute;
  readonly parameters: Record<string, string>;
}

/** Finds where a path leads; undefined when that is none of the lanes' business. */
export type FindDestination = (path: string) => Destination | undefined;

export function destinations(routes: readonly OperationRoute[]): FindDestination {
  const known = new Map(
    routes
      .filter(({ operation }) => operations.includes(operation.id))
      .map((route) => {
        const { path } = route.operation;
        return [path.slice(path.lastIndexOf('/')), { route, readPath: pathReader(path) }];
      }),
  );
  return (path) => {
    const one = known.get(path.slice(path.lastIndexOf('/')));
    const parameters = one?.readPath(path);
    return one === undefined || parameters === undefined ? undefined : { route: one.route, parameters };
  };
}

/** What is known of a request before its body is there. */
export type Asked = Pick<Arrival, 'url' | 'headers' | 'parameters' | 'query'>;

/** A request in its usual form, whose body is still to be read. */
export interface LaneRequest {
  readonly route: OperationRoute;
  readonly asked: Asked;
  readonly bodyBytes: number;
}

/** Undefined when the request leads elsewhere, or is written in an unusual way. */
export function readRequest(
  find: FindDestination,
  url: string,
  headers: IncomingHttpHeaders,
): LaneRequest | undefined {
  if (!areUsual(headers)) return undefined;
  const mark = url.indexOf('?');
  const destination = find(mark < 0 ? url : url.slice(0, mark));
  if (destination === undefined) return undefined;
  const { route, parameters } = destination;
  const query = mark < 0 ? {} : readQuery(url.slice(mark + 1));
  const bodyBytes = bodyLength(route, headers);
  if (query === undefined || bodyBytes === undefined) return undefined;
  return { route, asked: { url, headers, parameters, query }, bodyBytes };
}

/** Whether headers have what nearly every request has and nothing that asks for more care. */
function areUsual(headers: IncomingHttpHeaders): boolean {
  return (
    headers.host !== undefined &&
    headers.expect === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers['content-encoding'] === undefined &&
    isUsualType(headers['content-type'])
  );
}

const mediaType = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*(?:; ?charset=[a-z0-9-]+)?$/i;

/** The framework refuses what is no media type. */
function isUsualType(header: string | undefined): boolean {
  return header === 'application/json' || (header !== undefined && mediaType.test(header));
}

/** The length of the body, when the route takes one of that length and type; undefined otherwise. */
function bodyLength(route: OperationRoute, headers: IncomingHttpHeaders): number | undefined {
  const length = Number(headers['content-length']);
  // Without a length, or with nothing to read, this is not a number from 1 on.
  if (!(length > 0 && length <= route.bodyBytes)) return undefined;
  return checkMediaType(route.operation, headers) === undefined ? length : undefined;
}

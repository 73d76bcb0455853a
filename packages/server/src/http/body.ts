import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from '@millrace/contract';
import { isUtf8 } from '../platform/media-type.ts';
import { type Problem, problem } from '../platform/problem.ts';

/** Decodes strictly: bytes that are no UTF-8 are refused instead of being replaced in silence. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Refuses a media type or an encoding before the body is read. */
export function checkMediaType(operation: Operation, headers: IncomingHttpHeaders): Problem | undefined {
  const { body } = operation;
  if (body === undefined) return undefined;
  const encoding = headers['content-encoding'];
  if ('schema' in body && encoding !== undefined && encoding !== 'identity') {
    return problem('MEDIA_TYPE_NOT_SUPPORTED', 'The body must be sent without a content encoding here.');
  }
  const header = headers['content-type'];
  const accepted = 'schema' in body ? ['application/json'] : body.mediaTypes;
  if (accepted.includes('any')) return undefined;
  const mediaType = header?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (accepted.includes(mediaType) && isUtf8(header)) return undefined;
  const wanted = accepted.join(' or ');
  const given = mediaType === '' ? 'none' : mediaType.slice(0, 100);
  return problem('MEDIA_TYPE_NOT_SUPPORTED', `The content type must be ${wanted} in UTF-8, and is ${given}.`);
}

/** Reads the JSON document of a body. An empty body counts as `{}` where the contract lets it be left out. */
export function parseJson(operation: Operation, bytes: unknown): { value: unknown } | Problem {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength === 0) {
    const body = operation.body;
    const optional = body !== undefined && 'schema' in body && body.optional === true;
    return optional ? { value: {} } : problem('VALIDATION_FAILED', 'A JSON body is required.', bodyRequired);
  }
  try {
    return { value: JSON.parse(decoder.decode(bytes)) };
  } catch {
    return problem('MALFORMED_JSON', undefined, { errors: [{ pointer: '', message: 'is not JSON' }] });
  }
}

const bodyRequired = { errors: [{ pointer: '', message: 'a JSON body is required' }] };

/** An operation without a body takes an empty one, and what clients send when they mean an empty one. */
export function checkNoBody(bytes: unknown): Problem | undefined {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength === 0) return undefined;
  const text = bytes.byteLength > 64 ? '' : Buffer.from(bytes).toString('utf8').replace(/\s/g, '');
  return text === '{}' || text === 'null' ? undefined : problem('BODY_NOT_EXPECTED');
}

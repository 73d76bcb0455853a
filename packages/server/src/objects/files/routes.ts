import { finished, PassThrough, type Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../platform/clock.ts';
import { lastSegment, type ObjectKey } from '../key.ts';
import {
  type ObjectStore,
  type ObjectSummary,
  RangeNotSatisfiableError,
  StorageFullError,
} from '../objects.ts';
import { parseRange } from './range.ts';
import { type SignedRequest, signedPath, type UrlSigner } from './signature.ts';

/** Why a signed request was refused. The app renders it with the status in the comment. */
export type ObjectRefusal =
  | 'SIGNATURE_INVALID' // 403
  | 'OBJECT_NOT_FOUND' // 404
  | 'ALREADY_UPLOADED' // 409
  | 'LENGTH_MISMATCH' // 400
  | 'RANGE_NOT_SATISFIABLE' // 416
  | 'STORAGE_FULL'; // 503

export interface ObjectRoutesDependencies {
  store: ObjectStore;
  signer: UrlSigner;
  clock: Clock;
  /** The app's one renderer of problems. It sends the reply. */
  refuse(reply: FastifyReply, code: ObjectRefusal, detail: string): FastifyReply;
}

/**
 * Serves signed URLs: GET and HEAD of an object, PUT of an upload. Nothing else lets a request in, so the
 * routes need no session and are safe to open to anyone.
 *
 * They live in a scope of their own because uploads are streams of any media type and any size, which no
 * other route may accept. Requests are logged from warnings up only: their URLs are credentials.
 */
export function registerObjectRoutes(app: FastifyInstance, dependencies: ObjectRoutesDependencies): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // The media type of an upload means nothing here, not even when it is malformed, which Fastify refuses.
    scope.addHook('onRequest', async (request) => {
      delete request.headers['content-type'];
    });
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    const url = `${signedPath}*`;
    scope.route({
      method: ['GET', 'HEAD'],
      url,
      logLevel: 'warn',
      handler: (request, reply) => {
        const signed = verified(dependencies, request);
        return signed?.method === 'GET'
          ? download(dependencies, signed.key, request, reply)
          : refuseSignature(dependencies, reply);
      },
    });
    scope.route({
      method: 'PUT',
      url,
      logLevel: 'warn',
      bodyLimit: Number.MAX_SAFE_INTEGER,
      handler: (request, reply) => {
        const signed = verified(dependencies, request);
        return signed?.method === 'PUT'
          ? upload(dependencies, signed, request, reply)
          : refuseSignature(dependencies, reply);
      },
    });
    // No URL is ever signed for these; the answer is the one that any other change of the method gets.
    scope.route({
      method: ['DELETE', 'PATCH', 'POST'],
      url,
      logLevel: 'warn',
      bodyLimit: Number.MAX_SAFE_INTEGER,
      handler: (_request, reply) => refuseSignature(dependencies, reply),
    });
  });
}

function verified(
  { signer, clock }: ObjectRoutesDependencies,
  request: FastifyRequest,
): SignedRequest | undefined {
  const verification = signer.verify(request.method, request.raw.url ?? '', clock.now());
  return verification.verdict === 'valid' ? verification.request : undefined;
}

function refuseSignature({ refuse }: ObjectRoutesDependencies, reply: FastifyReply): FastifyReply {
  return refuse(reply, 'SIGNATURE_INVALID', 'This URL is not signed for this request, or it has expired.');
}

async function download(
  { store, refuse }: ObjectRoutesDependencies,
  key: ObjectKey,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const summary = await store.head(key);
  if (summary === undefined) return refuse(reply, 'OBJECT_NOT_FOUND', 'There is no such object.');
  const range = parseRange(requestedRange(request, summary), summary.size);
  if (range === 'unsatisfiable') return refuseRange(refuse, reply, summary.size);
  try {
    const object = request.method === 'HEAD' ? undefined : await store.get(key, range);
    if (object === undefined && request.method !== 'HEAD') {
      return refuse(reply, 'OBJECT_NOT_FOUND', 'There is no such object.');
    }
    describe(reply, key, object ?? summary);
    const length = object?.length ?? (range === undefined ? summary.size : range.end - range.start + 1);
    reply.header('content-length', length);
    if (range !== undefined) {
      const size = object?.size ?? summary.size;
      reply.code(206).header('content-range', `bytes ${range.start}-${range.start + length - 1}/${size}`);
    }
    return reply.send(object?.body);
  } catch (error) {
    // The object was replaced by a shorter one since it was looked at.
    if (error instanceof RangeNotSatisfiableError) return refuseRange(refuse, reply, summary.size);
    throw error;
  }
}

/** If-Range asks for the part only of the version that the client began with, and for the whole otherwise. */
function requestedRange(request: FastifyRequest, summary: ObjectSummary): string | undefined {
  const version = request.headers['if-range'];
  return version === undefined || version === summary.etag ? request.headers.range : undefined;
}

function refuseRange(
  refuse: ObjectRoutesDependencies['refuse'],
  reply: FastifyReply,
  size: number,
): FastifyReply {
  reply.header('content-range', `bytes */${size}`);
  return refuse(reply, 'RANGE_NOT_SATISFIABLE', `The object has ${size} bytes.`);
}

/** Always a download of bytes: an object that is shown as a page would run its scripts as this service. */
function describe(reply: FastifyReply, key: ObjectKey, summary: ObjectSummary): void {
  reply
    .header('accept-ranges', 'bytes')
    .header('cache-control', 'no-store')
    .header('content-disposition', `attachment; filename="${lastSegment(key)}"`)
    .header('content-type', 'application/octet-stream')
    .header('etag', summary.etag)
    .header('last-modified', new Date(summary.lastModified).toUTCString())
    .header('x-content-type-options', 'nosniff');
}

async function upload(
  { store, refuse }: ObjectRoutesDependencies,
  signed: Extract<SignedRequest, { method: 'PUT' }>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { contentLength } = signed;
  if (request.headers['content-length'] !== String(contentLength)) {
    return refuse(reply, 'LENGTH_MISMATCH', `Content-Length must be ${contentLength}, as signed.`);
  }
  // Spares a client the upload that would be refused at its end; only the end is safe from races.
  if ((await store.head(signed.key)) !== undefined) return refuseSecond(refuse, reply);
  try {
    const result = await store.create(signed.key, bodyOf(request), { contentLength });
    switch (result.outcome) {
      case 'created':
        return reply.code(200).header('etag', result.etag).send();
      case 'exists':
        return refuseSecond(refuse, reply);
      case 'length-mismatch':
        return refuse(reply, 'LENGTH_MISMATCH', `The body must have ${contentLength} bytes, as signed.`);
    }
  } catch (error) {
    if (error instanceof StorageFullError) {
      return refuse(reply, 'STORAGE_FULL', 'There is no room for the upload now; try again later.');
    }
    if (!request.raw.complete && request.raw.destroyed) {
      // The client went away: nobody is left to answer, and it is no fault of the service.
      reply.hijack();
      reply.raw.destroy();
      return reply;
    }
    throw error;
  } finally {
    // A client that is still sending reads its answer only once somebody has taken the rest from it.
    request.raw.unpipe().resume();
  }
}

/** The store destroys a body that it gives up; that must not cut the connection, which carries the answer. */
function bodyOf({ raw }: FastifyRequest): Readable {
  const body = new PassThrough();
  finished(raw, (error) => {
    if (error) body.destroy(error);
  });
  return raw.pipe(body);
}

function refuseSecond(refuse: ObjectRoutesDependencies['refuse'], reply: FastifyReply): FastifyReply {
  return refuse(reply, 'ALREADY_UPLOADED', 'Something was already uploaded with this URL.');
}

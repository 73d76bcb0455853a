import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Clock } from '../../platform/clock.ts';
import { InvalidKeyError, lastSegment, maximumKeyBytes, requireKey, requirePrefix } from '../key.ts';
import type { S3Location } from '../location.ts';
import {
  type ByteRange,
  LengthMismatchError,
  type ObjectStore,
  type ObjectSummary,
  type OpenObject,
  RangeNotSatisfiableError,
} from '../objects.ts';
import { isContended, isMissing, isTaken, statusOf, writeFault } from './faults.ts';
import { listBucket } from './listing.ts';
import { type UploadTarget, uploadContent } from './upload.ts';

/**
 * Objects in an S3 bucket, below a prefix. Signed URLs lead to the S3 server itself, which checks them.
 *
 * A signed PUT signs the length and `If-None-Match: *`, so the server refuses any other length and a second
 * upload; the uploader has to send that header (see `relayUploads` for uploaders that cannot).
 */
export interface S3Store extends ObjectStore {
  /** Where an object is, for engines that read the bucket themselves. */
  uriOf(key: string): string;
}

export interface S3StoreOptions {
  location: S3Location;
  clock: Clock;
}

/** A request must begin to answer within this; parts are small enough for slow lines. */
const requestTimeoutMs = 120_000;
/** A connection over which nothing moves is given up after this, in the middle of a body too. */
const idleTimeoutMs = 30_000;
const connectionTimeoutMs = 5_000;
const attempts = 3;

export function openS3Store({ location, clock }: S3StoreOptions): S3Store {
  const { bucket, prefix } = location;
  const client = new S3Client({
    forcePathStyle: location.forcePathStyle,
    maxAttempts: attempts,
    // A checksum computed while signing would be that of an empty body and spoil signed uploads.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: idleTimeoutMs,
    },
    ...(location.region === undefined ? {} : { region: location.region }),
    ...(location.endpoint === undefined ? {} : { endpoint: location.endpoint }),
    ...(location.credentials === undefined ? {} : { credentials: location.credentials }),
  });

  function place(key: string): { Bucket: string; Key: string } {
    const full = prefix + requireKey(key);
    if (full.length > maximumKeyBytes) throw new InvalidKeyError('The key is too long below its prefix.');
    return { Bucket: bucket, Key: full };
  }

  function target(key: string, exclusive: boolean): UploadTarget {
    return { client, bucket, key: place(key).Key, exclusive };
  }

  async function head(key: string): Promise<ObjectSummary | undefined> {
    try {
      const answer = await client.send(new HeadObjectCommand(place(key)));
      return {
        size: answer.ContentLength ?? 0,
        lastModified: answer.LastModified?.getTime() ?? 0,
        etag: answer.ETag ?? '',
      };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  return {
    uriOf: (key) => `s3://${bucket}/${place(key).Key}`,
    head,
    async put(key, body, options = {}) {
      try {
        return await uploadContent(target(key, false), body, options);
      } catch (error) {
        throw writeFault(error);
      }
    },
    async create(key, body, options) {
      try {
        return { outcome: 'created', ...(await uploadContent(target(key, true), body, options)) };
      } catch (error) {
        if (error instanceof LengthMismatchError) return { outcome: 'length-mismatch' };
        if (isTaken(error)) return { outcome: 'exists' };
        if (isContended(error) && (await head(key)) !== undefined) return { outcome: 'exists' };
        throw writeFault(error);
      }
    },
    async get(key, range) {
      try {
        const command = new GetObjectCommand({ ...place(key), ...rangeHeader(range) });
        return openObject(await client.send(command));
      } catch (error) {
        if (isMissing(error)) return undefined;
        if (statusOf(error) !== 416) throw error;
        throw new RangeNotSatisfiableError('The range begins past the last byte.', { cause: error });
      }
    },
    async delete(key) {
      try {
        await client.send(new DeleteObjectCommand(place(key)));
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },
    async list(under, { after = '', limit }) {
      const request = { prefix: requirePrefix(under), after: requirePrefix(after), limit };
      return listBucket({ client, bucket, prefix }, request);
    },
    async signedGet(key, { expiresAt }) {
      const where = place(key);
      const command = new GetObjectCommand({
        ...where,
        ResponseCacheControl: 'no-store',
        ResponseContentDisposition: `attachment; filename="${lastSegment(requireKey(key))}"`,
        ResponseContentType: 'application/octet-stream',
      });
      return getSignedUrl(client, command, lifetime(clock.now(), expiresAt));
    },
    async signedPut(key, { expiresAt, contentLength }) {
      const command = new PutObjectCommand({ ...place(key), ContentLength: contentLength, IfNoneMatch: '*' });
      const url = await getSignedUrl(client, command, lifetime(clock.now(), expiresAt));
      return { url, headers: { 'if-none-match': '*' } };
    },
    async check() {
      await client.send(new HeadBucketCommand({ Bucket: bucket }));
    },
    async close() {
      client.destroy();
    },
  };
}

/** Signed from now, in whole seconds. An expiry in the past gives a URL that has expired, as it would later. */
function lifetime(now: number, expiresAt: number): { signingDate: Date; expiresIn: number } {
  const expirySecond = Math.floor(expiresAt / 1000);
  const signingSecond = Math.min(Math.floor(now / 1000), expirySecond - 1);
  return { signingDate: new Date(signingSecond * 1000), expiresIn: expirySecond - signingSecond };
}

function rangeHeader(range: ByteRange | undefined): { Range?: string } {
  if (range === undefined) return {};
  if (range.end !== undefined && range.end < range.start) {
    throw new RangeNotSatisfiableError('The range ends before it begins.');
  }
  return { Range: `bytes=${range.start}-${range.end ?? ''}` };
}

interface GetAnswer {
  Body?: unknown;
  ContentLength?: number | undefined;
  ContentRange?: string | undefined;
  LastModified?: Date | undefined;
  ETag?: string | undefined;
}

function openObject(answer: GetAnswer): OpenObject {
  if (!(answer.Body instanceof Readable)) throw new Error('The S3 server answered without a body.');
  const length = answer.ContentLength ?? 0;
  const size = answer.ContentRange === undefined ? length : Number(answer.ContentRange.split('/').at(-1));
  return {
    body: answer.Body,
    length,
    size,
    lastModified: answer.LastModified?.getTime() ?? 0,
    etag: answer.ETag ?? '',
  };
}

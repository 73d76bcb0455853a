import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { contentChunks } from '../content.ts';
import type { ObjectContent, PutOptions, StoredObject } from '../objects.ts';
import { isContended } from './faults.ts';

/**
 * Writes a stream of any length to S3 with bounded memory: at most three parts are held. What fits one
 * part is a single request; more is a multipart upload, which becomes visible only when it is completed
 * and is aborted when anything goes wrong. Parts are buffers, so a failed request can be sent again.
 */
export interface UploadTarget {
  client: S3Client;
  bucket: string;
  /** The whole key in the bucket. */
  key: string;
  /** Fail where there is an object of that key. */
  exclusive: boolean;
}

const mebibyte = 1024 * 1024;
const defaultPartBytes = 8 * mebibyte;
const maximumParts = 10_000;
const contendedAttempts = 3;

export async function uploadContent(
  target: UploadTarget,
  body: ObjectContent,
  options: PutOptions,
): Promise<StoredObject> {
  let held: Buffer | undefined;
  let multipart: MultipartUpload | undefined;
  try {
    for await (const part of parts(contentChunks(body, options), partBytes(options.contentLength))) {
      if (held !== undefined) {
        multipart ??= await beginMultipart(target, options.signal);
        await multipart.send(held);
      }
      held = part;
    }
    options.signal?.throwIfAborted();
    if (multipart === undefined) return await putWhole(target, held ?? Buffer.alloc(0), options.signal);
    if (held !== undefined) await multipart.send(held);
    return await multipart.complete();
  } catch (error) {
    await multipart?.abort();
    throw error;
  }
}

/** Larger parts for an object that is known not to fit ten thousand of the usual size. */
function partBytes(contentLength = 0): number {
  return Math.max(defaultPartBytes, Math.ceil(contentLength / maximumParts / mebibyte) * mebibyte);
}

async function* parts(
  chunks: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Buffer, void, undefined> {
  let collected: Uint8Array[] = [];
  let bytes = 0;
  for await (let chunk of chunks) {
    while (bytes + chunk.byteLength >= size) {
      yield Buffer.concat([...collected, chunk.subarray(0, size - bytes)]);
      chunk = chunk.subarray(size - bytes);
      collected = [];
      bytes = 0;
    }
    if (chunk.byteLength > 0) collected.push(chunk);
    bytes += chunk.byteLength;
  }
  if (bytes > 0) yield Buffer.concat(collected);
}

async function putWhole(
  { client, bucket, key, exclusive }: UploadTarget,
  content: Buffer,
  signal: AbortSignal | undefined,
): Promise<StoredObject> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const command = new PutObjectCommand({
        Bucket: bucket,
        Key: key,
        Body: content,
        ContentLength: content.byteLength,
        ...(exclusive ? { IfNoneMatch: '*' } : {}),
      });
      const answer = await client.send(command, abortable(signal));
      return { size: content.byteLength, etag: answer.ETag ?? '' };
    } catch (error) {
      if (!isContended(error) || attempt === contendedAttempts) throw error;
    }
  }
}

interface MultipartUpload {
  /** Sends the part while the caller collects the next one; waits for the one before. */
  send(part: Buffer): Promise<void>;
  complete(): Promise<StoredObject>;
  abort(): Promise<void>;
}

async function beginMultipart(
  { client, bucket, key, exclusive }: UploadTarget,
  signal: AbortSignal | undefined,
): Promise<MultipartUpload> {
  const begun = await client.send(
    new CreateMultipartUploadCommand({ Bucket: bucket, Key: key }),
    abortable(signal),
  );
  if (begun.UploadId === undefined) throw new Error('The S3 server began a multipart upload without an id.');
  const upload = { Bucket: bucket, Key: key, UploadId: begun.UploadId };
  const sent: { PartNumber: number; ETag: string }[] = [];
  let count = 0;
  let size = 0;
  let sending: Promise<void> = Promise.resolve();

  async function sendPart(part: Buffer, number: number): Promise<void> {
    const command = new UploadPartCommand({
      ...upload,
      PartNumber: number,
      Body: part,
      ContentLength: part.byteLength,
    });
    const answer = await client.send(command, abortable(signal));
    sent.push({ PartNumber: number, ETag: answer.ETag ?? '' });
  }

  return {
    async send(part) {
      await sending;
      count += 1;
      size += part.byteLength;
      if (count > maximumParts) throw new RangeError(`An object has at most ${maximumParts} parts.`);
      sending = sendPart(part, count);
      // It is awaited by the next step; until then its failure must not count as unhandled.
      sending.catch(() => {});
    },
    async complete() {
      await sending;
      const command = new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts: sent },
        ...(exclusive ? { IfNoneMatch: '*' } : {}),
      });
      const answer = await client.send(command, abortable(signal));
      return { size, etag: answer.ETag ?? '' };
    },
    async abort() {
      // A part that arrives after the abort would stay, so the one on its way is waited for.
      await sending.catch(() => {});
      // The failure that led here is the one to report; what stays is for the bucket's lifecycle rule.
      await client.send(new AbortMultipartUploadCommand(upload)).catch(() => {});
    },
  };
}

function abortable(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}

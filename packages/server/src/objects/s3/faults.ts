import { S3ServiceException } from '@aws-sdk/client-s3';
import { KeyConflictError, StorageFullError } from '../objects.ts';

/** What servers that keep objects as plain files call a key that is also a directory. */
const conflictNames = new Set([
  'ObjectParentIsFile',
  'ExistingObjectIsDirectory',
  'XMinioParentIsObject',
  'XMinioObjectExistsAsDirectory',
]);

const fullNames = new Set([
  'InsufficientStorage',
  'QuotaExceeded',
  'XMinioStorageFull',
  'XMinioAdminBucketQuotaExceeded',
]);

export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** There is no such object. A missing bucket is no such answer where the server names it. */
export function isMissing(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  if (error.name === 'NoSuchBucket') return false;
  return statusOf(error) === 404 || conflictNames.has(error.name);
}

/** The condition of an exclusive write did not hold: there is an object of that key. */
export function isTaken(error: unknown): boolean {
  return statusOf(error) === 412;
}

/** Another write of the same key was under way; the server asks to try again. */
export function isContended(error: unknown): boolean {
  return error instanceof S3ServiceException && error.name === 'ConditionalRequestConflict';
}

/** Turns the failures of a write that have a meaning to callers into the errors of the port. */
export function writeFault(error: unknown): unknown {
  if (!(error instanceof S3ServiceException)) return error;
  if (conflictNames.has(error.name)) {
    return new KeyConflictError('A key cannot be both an object and a directory of objects.', {
      cause: error,
    });
  }
  if (fullNames.has(error.name) || statusOf(error) === 507) {
    return new StorageFullError('The S3 server has no room left.', { cause: error });
  }
  return error;
}

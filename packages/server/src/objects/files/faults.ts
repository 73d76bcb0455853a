import { KeyConflictError, StorageFullError } from '../objects.ts';

/** The code of a failed system call, such as ENOENT. */
export function faultCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Nothing is there: no such file, or something on the way to it is not a directory. */
export function isMissing(error: unknown): boolean {
  const code = faultCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Turns the failures of a write that have a meaning to callers into the errors of the port. */
export function writeFault(error: unknown): unknown {
  switch (faultCode(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StorageFullError('The file system of the object store is full.', { cause: error });
    case 'ENOTDIR':
    case 'EISDIR':
    case 'ENOTEMPTY':
      return new KeyConflictError('A key cannot be both an object and a directory of objects.', {
        cause: error,
      });
    default:
      return error;
  }
}

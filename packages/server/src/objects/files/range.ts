import type { ByteRange } from '../objects.ts';

/**
 * The one range of bytes that a Range header asks of an object of the given size. Undefined, meaning the
 * whole object, for a header that is malformed, in another unit or asks for several ranges: RFC 9110 lets a
 * server ignore those, and answering many small ranges is a known way to make one work for nothing.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): Required<ByteRange> | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*([0-9]*)-([0-9]*)\s*$/i.exec(header ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? undefined : suffixRange(Number(last), size);
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start < size ? { start, end } : 'unsatisfiable';
}

function suffixRange(count: number, size: number): Required<ByteRange> | 'unsatisfiable' {
  if (count === 0 || size === 0) return 'unsatisfiable';
  return { start: Math.max(0, size - count), end: size - 1 };
}

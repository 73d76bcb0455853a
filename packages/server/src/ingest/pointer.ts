/** Reads one place of a JSON document (RFC 6901). The pointer is split once for all messages of a batch. */
export type PointerReader = (document: unknown) => unknown;

export function pointerReader(pointer: string): PointerReader {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return (document) => step(document, only);
  return (document) => parts.reduce<unknown>(step, document);
}

function step(value: unknown, part: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,8})$/.test(part) ? value[Number(part)] : undefined;
  return Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
}

/**
 * Reads the addresses of the fast lane. It knows plain ones only, the way nearly every client writes them;
 * what it does not know is for the router, so it never has to say that an address is wrong.
 */

/** The parameters in a path; undefined when the path is another, or written in an unusual way. */
export type PathReader = (path: string) => Record<string, string> | undefined;

/** Makes a reader of a path of the contract, with `{name}` for its parameters. */
export function pathReader(path: string): PathReader {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
  const shape = new RegExp(
    `^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '([A-Za-z0-9._~-]{1,128})')}$`,
  );
  return (given) => {
    const match = shape.exec(given);
    if (match === null) return undefined;
    const parameters: Record<string, string> = {};
    for (let index = 0; index < names.length; index += 1) {
      parameters[names[index] ?? ''] = match[index + 1] ?? '';
    }
    return parameters;
  };
}

const plainName = /^[A-Za-z]+$/;
/** What means itself in a query, and percent signs. A plus would be a space, and the rest is unusual. */
const plainValue = /^[A-Za-z0-9._~:@!$'()*,/%-]+$/;

/** The parameters of a query, each given once; undefined when it is written in an unusual way. */
export function readQuery(text: string): Record<string, unknown> | undefined {
  const query: Record<string, unknown> = {};
  for (const part of text.split('&')) {
    const equals = part.indexOf('=');
    if (equals < 0) return undefined;
    const name = part.slice(0, equals);
    const value = part.slice(equals + 1);
    if (!plainName.test(name) || !plainValue.test(value) || Object.hasOwn(query, name)) return undefined;
    const decoded = value.includes('%') ? decode(value) : value;
    if (decoded === undefined) return undefined;
    query[name] = decoded;
  }
  return query;
}

function decode(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

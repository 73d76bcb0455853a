/** Numbers that look random and are the same in every run. */
export type Chance = (limit: number) => number;

/** Mulberry32: small, and good enough to make up documents. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

export function pick<Item>(chance: Chance, items: readonly Item[]): Item {
  const [item] = items.slice(chance(items.length));
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}

const spaces = ['', '', '', ' ', '\n', '\r\n', '\t', '  \n '] as const;
const pieces = [
  '"',
  '\\',
  '\\\\"',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '],[',
  '"},{"',
  '/',
  '~',
  '~0~1',
  '__proto__',
  'a',
  'é',
  '漢',
  '🎈',
  '\u0000',
  '\u2028',
  '\ufeff',
  '\n',
  '\ud800',
] as const;
const scalars = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '12345678901234567890',
  '1e400',
  '-1.50E-7',
  '""',
] as const;
const names = [
  'a',
  'b',
  '',
  '0',
  '1',
  'a/b',
  'm~n',
  '~1',
  '__proto__',
  'constructor',
  'toString',
  'length',
] as const;

/** The text of a random string, with some characters escaped that need not be. */
export function randomString(chance: Chance): string {
  const text = Array.from({ length: chance(6) }, () => pick(chance, pieces)).join('');
  const written = JSON.stringify(text);
  return chance(3) > 0 ? written : written.replaceAll('/', '\\/').replaceAll('a', '\\u0061');
}

/** The text of a random JSON value with white space where it may be. */
export function randomJson(chance: Chance, depth = 4): string {
  const around = (text: string) => `${pick(chance, spaces)}${text}${pick(chance, spaces)}`;
  const some = (make: () => string) => Array.from({ length: chance(4) }, () => around(make())).join(',');
  switch (chance(depth > 0 ? 5 : 2)) {
    case 0:
      return pick(chance, scalars);
    case 1:
      return randomString(chance);
    case 2:
      return `[${some(() => randomJson(chance, depth - 1)) || pick(chance, spaces)}]`;
    default: {
      const name = () => (chance(2) === 0 ? JSON.stringify(pick(chance, names)) : randomString(chance));
      return `{${some(() => `${around(name())}:${around(randomJson(chance, depth - 1))}`)}}`;
    }
  }
}

/** A text with some of its bytes changed, lost, doubled or cut off. */
export function damaged(chance: Chance, bytes: Uint8Array): Uint8Array {
  const damages: (() => Uint8Array)[] = [
    () => bytes.subarray(0, chance(bytes.length + 1)),
    () => bytes.subarray(chance(bytes.length + 1)),
    () => {
      const at = chance(bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
    },
    () => {
      const at = chance(bytes.length + 1);
      const inserted = Buffer.from(
        pick(chance, ['[', ']', '{', '}', ',', '"', '\\', ' ', '0', '\u0000', 'é']),
      );
      return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)]);
    },
    () => {
      const changed = Buffer.from(bytes);
      if (changed.length > 0) changed[chance(changed.length)] = chance(256);
      return changed;
    },
  ];
  return pick(chance, damages)();
}

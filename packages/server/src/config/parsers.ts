import { isIP } from 'node:net';

/** How one setting is read: from text to a value, or a sentence that says what is wrong with it. */
export type Parse<Value> = (text: string) => Value | Refusal;

export class Refusal {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export const text: Parse<string> = (given) => given.trim() || new Refusal('must not be empty');

export function integer(minimum: number, maximum: number): Parse<number> {
  return (given) => {
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    const within = value >= minimum && value <= maximum;
    return within ? value : new Refusal(`must be a whole number from ${minimum} to ${maximum}`);
  };
}

export function choice<const Values extends readonly string[]>(values: Values): Parse<Values[number]> {
  return (given) =>
    values.find((value) => value === given) ?? new Refusal(`must be one of ${values.join(', ')}`);
}

const list: Parse<string[]> = (given) =>
  given
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** A URL with one of these schemes. What was given is not repeated: it may hold a password. */
export function url(...schemes: string[]): Parse<string | undefined> {
  return (given) => {
    const scheme = URL.canParse(given) ? new URL(given).protocol.slice(0, -1) : undefined;
    if (scheme !== undefined && schemes.includes(scheme)) return given;
    return new Refusal(`must be a URL that starts with ${schemes.map((name) => `${name}:`).join(' or ')}`);
  };
}

export const origins: Parse<string[]> = (given) => {
  const parsed = list(given);
  if (parsed instanceof Refusal) return parsed;
  return parsed.every((item) => item === '*' || isOrigin(item))
    ? parsed
    : new Refusal('must be * or a list of origins such as https://app.example.com, separated by commas');
};

export const networks: Parse<string[]> = (given) => {
  const parsed = list(given);
  if (parsed instanceof Refusal) return parsed;
  return parsed.every(isNetwork)
    ? parsed
    : new Refusal('must be a list of addresses or networks such as 10.0.0.0/8, separated by commas');
};

/** Hosts that tasks may connect to. */
export const hosts: Parse<string[]> = (given) => {
  const parsed = list(given);
  if (parsed instanceof Refusal) return parsed;
  return parsed.every((item) => hostPattern.test(item))
    ? parsed
    : new Refusal(
        'must be a list of host names such as api.example.com, *.example.com or api.example.com:8443, separated by commas',
      );
};

const hostPattern = /^(?:\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)(?::[1-9]\d{0,4})?$/;

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return (
    bits > 0 &&
    rest.length === 0 &&
    (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits))
  );
}

/** An origin is compared letter by letter, so one with a pattern in it would never match. */
function isOrigin(item: string): boolean {
  return URL.canParse(item) && new URL(item).origin === item && !item.includes('*');
}

export const publicUrl: Parse<string | undefined> = (given) => {
  const parsed = url('http', 'https')(given);
  if (typeof parsed !== 'string') return parsed;
  const { username, password, search, hash } = new URL(parsed);
  return username + password + search + hash === ''
    ? parsed.replace(/\/+$/, '')
    : new Refusal('must be a plain URL, without a password, a query or a fragment');
};

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { requirePrefix } from './key.ts';

/**
 * Where objects are kept, as one URL setting says it:
 *
 * - `file:///var/lib/millrace/objects` or `file:data/objects` (relative to the working directory);
 * - `s3://bucket/prefix?region=eu-central-1`, with `endpoint=http://127.0.0.1:9000` and
 *   `forcePathStyle=true` for other servers than AWS. Credentials are `s3://KEY:SECRET@bucket`,
 *   percent-encoded, or come from where the AWS tools look for them.
 *
 * A refusal names what is wrong and never repeats the setting, which may hold a secret.
 */
export type ObjectsLocation =
  | { kind: 'files'; directory: string }
  | ({ kind: 's3' } & S3Location)
  | { kind: 'refused'; reason: string };

export interface S3Location {
  bucket: string;
  /** Empty, or whole segments with `/` at the end. */
  prefix: string;
  region?: string;
  endpoint?: string;
  forcePathStyle: boolean;
  credentials?: { accessKeyId: string; secretAccessKey: string };
}

export function parseObjectsLocation(text: string): ObjectsLocation {
  if (text.includes('\0')) return refused('The objects URL has a NUL character.');
  if (/^file:/i.test(text)) return parseFileLocation(text);
  if (/^s3:/i.test(text)) return parseS3Location(text);
  return refused('The objects URL must begin with file: or s3://.');
}

function refused(reason: string): ObjectsLocation {
  return { kind: 'refused', reason };
}

function parseFileLocation(text: string): ObjectsLocation {
  const rest = text.slice('file:'.length);
  if (rest.includes('?') || rest.includes('#')) return refused('A file: objects URL takes no parameters.');
  if (!rest.startsWith('/')) {
    const relative = decode(rest);
    if (relative === undefined) return refused('The file: objects URL has a broken percent-encoding.');
    return relative === '' ? refused('The file: objects URL names no directory.') : files(relative);
  }
  try {
    // Takes care of the host, of percent-encoding and of encoded slashes.
    return files(fileURLToPath(text));
  } catch {
    return refused('The file: objects URL must have no host and an absolute or relative path.');
  }
}

function files(directory: string): ObjectsLocation {
  const absolute = path.resolve(directory);
  if (absolute.includes('\0')) return refused('The objects URL has a NUL character.');
  if (absolute === path.parse(absolute).root) return refused('Objects cannot be kept in the root directory.');
  return { kind: 'files', directory: absolute };
}

const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const regionPattern = /^[a-z0-9-]{1,64}$/;
const parameters = new Set(['region', 'endpoint', 'forcePathStyle']);

function parseS3Location(text: string): ObjectsLocation {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refused('The s3: objects URL cannot be read; percent-encode characters such as "/" in a secret.');
  }
  if (!bucketPattern.test(url.hostname) || url.port !== '') {
    return refused(
      'The s3: objects URL must name a bucket, as in s3://bucket/prefix, of 3 to 63 lower-case letters, digits, "." and "-"; percent-encode characters such as "/" in a secret.',
    );
  }
  if (url.hash !== '') return refused('The s3: objects URL has a "#"; percent-encode it in a secret.');
  const prefix = parsePrefix(url.pathname);
  if (prefix === undefined) return refused('The prefix in the s3: objects URL is not a valid key.');
  const credentials = parseCredentials(url);
  if (credentials === 'broken') {
    return refused(
      'The s3: objects URL must have both an access key and a secret, percent-encoded, or neither.',
    );
  }
  const setting = parseParameters(url.searchParams);
  if (typeof setting === 'string') return refused(setting);
  return {
    kind: 's3',
    bucket: url.hostname,
    prefix,
    ...setting,
    ...(credentials === undefined ? {} : { credentials }),
  };
}

function parsePrefix(pathname: string): string | undefined {
  const text = decode(pathname.replace(/^\//, '').replace(/\/$/, ''));
  if (text === undefined) return undefined;
  if (text === '') return '';
  try {
    return requirePrefix(`${text}/`);
  } catch {
    return undefined;
  }
}

function parseCredentials(url: URL): { accessKeyId: string; secretAccessKey: string } | 'broken' | undefined {
  if (url.username === '' && url.password === '') return undefined;
  const accessKeyId = decode(url.username);
  const secretAccessKey = decode(url.password);
  return accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : 'broken';
}

/** The parameters, or the sentence that says what is wrong with them. */
function parseParameters(
  search: URLSearchParams,
): Pick<S3Location, 'region' | 'endpoint' | 'forcePathStyle'> | string {
  for (const name of search.keys()) {
    if (!parameters.has(name)) {
      return `The s3: objects URL has an unknown parameter; known are ${[...parameters].join(', ')}.`;
    }
    if (search.getAll(name).length > 1) return `The s3: objects URL has the parameter ${name} twice.`;
  }
  const region = search.get('region');
  if (region !== null && !regionPattern.test(region))
    return 'The region in the s3: objects URL is not valid.';
  const endpoint = search.get('endpoint');
  if (endpoint !== null && !isEndpoint(endpoint)) {
    return 'The endpoint in the s3: objects URL must be http:// or https:// with a host and nothing after it.';
  }
  const style = search.get('forcePathStyle');
  if (style !== null && style !== 'true' && style !== 'false') {
    return 'forcePathStyle in the s3: objects URL must be true or false.';
  }
  return {
    // Servers other than AWS mostly have no name for each bucket and do not care about the region.
    forcePathStyle: style === null ? endpoint !== null : style === 'true',
    ...(endpoint === null ? {} : { endpoint, region: region ?? 'us-east-1' }),
    ...(endpoint === null && region !== null ? { region } : {}),
  };
}

function isEndpoint(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const plain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return /^https?:$/.test(url.protocol) && plain && url.pathname === '/';
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

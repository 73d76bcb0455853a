import type { Random } from '../platform/random.ts';
import { randomId } from '../platform/random.ts';

/** Every key of the lake is made and read here, so that no file lands in the folder of somebody else. */

/** Objects of the lake have this before the key that people see. */
export const objectFolder = 'lake/';

export const hourMilliseconds = 3_600_000;

/** The object that holds a file. */
export function objectKeyOf(fileKey: string): string {
  return `${objectFolder}${fileKey}`;
}

export function organizationFolder(organizationName: string): string {
  return `organization=${organizationName}`;
}

/** What the keys of all files of a topic begin with. */
export function topicFolder(organizationName: string, topicName: string): string {
  return `${organizationFolder(organizationName)}/topic=${topicName}/`;
}

/** What the keys of the files of an hour begin with. They sort by time. */
export function hourFolder(organizationName: string, topicName: string, hour: number): string {
  const time = new Date(hour);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `month=${two(time.getUTCMonth() + 1)}/day=${two(time.getUTCDate())}/hour=${two(time.getUTCHours())}`;
  return `${topicFolder(organizationName, topicName)}year=${String(time.getUTCFullYear()).padStart(4, '0')}/${day}/`;
}

export function newFileKey(
  organizationName: string,
  topicName: string,
  hour: number,
  random: Random,
): string {
  return `${hourFolder(organizationName, topicName, hour)}${randomId(random)}.parquet`;
}

/** Where a file lies below the folder of its organization. */
export function pathInOrganization(fileKey: string): string {
  return fileKey.slice(fileKey.indexOf('/') + 1);
}

/** Whose file a key is; undefined when it is no key of a file. */
export function ownerOf(fileKey: string): { organizationName: string; topicName: string } | undefined {
  const match = /^organization=([^/]+)\/topic=([^/]+)\/year=\d{4}\/.+\.parquet$/.exec(fileKey);
  const [, organizationName, topicName] = match ?? [];
  return organizationName === undefined || topicName === undefined
    ? undefined
    : { organizationName, topicName };
}

/** The range of keys that a prefix stands for, given in full or from the folder of the topic on. */
export function keyRange(
  organizationName: string,
  topicName: string,
  prefix: string,
): { from: string; below: string } | undefined {
  // A key has no other characters, and a database may not take every text.
  if (!/^[A-Za-z0-9=._/-]*$/.test(prefix)) return undefined;
  const folder = topicFolder(organizationName, topicName);
  const isWhole = prefix.startsWith(folder);
  const from = isWhole ? prefix : folder.startsWith(prefix) ? folder : `${folder}${prefix}`;
  return { from, below: afterAll(from) };
}

/** Sorts after every key that begins so, and before every other that is greater: keys are ASCII. */
export function afterAll(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

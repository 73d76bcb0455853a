import type { Entry } from 'yauzl';
import { getFileNameLowLevel } from 'yauzl';

const mostBytes = 1024;
const mostPartBytes = 255;
const mostParts = 64;

/** The name of an entry, taken apart, or what is wrong with it. */
export type EntryName =
  | { readonly parts: readonly string[]; readonly endsWithSlash: boolean }
  | { readonly wrong: string };

const utf8Name = 0x800;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The name as the archive has it. Bytes that are no text are shown as well as may be. */
export function shownName(entry: Entry): string {
  return JSON.stringify(entry.fileNameRaw.toString('utf8').slice(0, 100));
}

/**
 * Takes only names that mean the same everywhere: no way out of the directory, nothing that one system
 * takes for a separator and another for a letter, nothing that a terminal would obey.
 */
export function nameOf(entry: Entry): EntryName {
  if (!isText(entry)) return { wrong: 'has a name that is not UTF-8' };
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  // Any name that was not well-formed has been decoded to something else by now.
  if (name.includes('\ufffd')) return { wrong: 'has a name that is not UTF-8' };
  if (name === '') return { wrong: 'has an empty name' };
  if (name.includes('\0')) return { wrong: 'has a NUL in its name' };
  if (name.includes('\\')) return { wrong: 'has a backslash in its name; use / between folders' };
  if (/\p{Cc}/u.test(name)) return { wrong: 'has a control character in its name' };
  if (name.startsWith('/')) return { wrong: 'has an absolute path' };
  if (/^[a-z]:/i.test(name)) return { wrong: 'has a drive letter' };
  if (Buffer.byteLength(name) > mostBytes) return { wrong: `has a path of more than ${mostBytes} bytes` };
  const endsWithSlash = name.endsWith('/');
  const segments = (endsWithSlash ? name.slice(0, -1) : name).split('/');
  if (segments.includes('..')) return { wrong: 'leads out of the archive with ..' };
  if (segments.includes('')) return { wrong: 'has an empty part in its path' };
  const parts = segments.filter((segment) => segment !== '.');
  if (parts.length > mostParts) return { wrong: `is more than ${mostParts} folders deep` };
  if (parts.some((part) => Buffer.byteLength(part) > mostPartBytes)) {
    return { wrong: `has a part of more than ${mostPartBytes} bytes in its path` };
  }
  return { parts, endsWithSlash };
}

function isText(entry: Entry): boolean {
  if ((entry.generalPurposeBitFlag & utf8Name) === 0) return true;
  try {
    decoder.decode(entry.fileNameRaw);
    return true;
  } catch {
    return false;
  }
}

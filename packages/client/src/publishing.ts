import type { NamedType } from '@millrace/contract';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';

export interface PublishOptions extends OrganizationOptions {
  /** Messages of one key keep their order. */
  readonly key: string;
  /** A message with an id that was accepted before is a duplicate; one is made unless given. */
  readonly id?: string | undefined;
  /** Of a text or of bytes; `text/plain` and `application/octet-stream` unless given. */
  readonly mediaType?: string | undefined;
}

export interface PublishManyOptions extends OrganizationOptions {
  /** A JSON pointer to the key in each message, such as `/user`. */
  readonly keyPath?: string | undefined;
  /** A JSON pointer to the id in each message. */
  readonly idPath?: string | undefined;
}

export interface PublishLinesOptions extends PublishManyOptions {
  /** Set when the lines are compressed already. */
  readonly encoding?: 'gzip';
}

/** Not `randomUUID`, which browsers have on secure pages only. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function publishMessage(
  scope: Scope,
  topicName: string,
  message: object | string | Uint8Array<ArrayBuffer>,
  options: PublishOptions,
): Promise<NamedType<'Published'>> {
  const bytes = message instanceof Uint8Array;
  const usual = bytes
    ? 'application/octet-stream'
    : typeof message === 'string'
      ? 'text/plain'
      : 'application/json';
  return scope.transport.call('message', {
    path: { organizationName: organizationOf(scope, options), topicName },
    // With an id of our own a second try is never a second message.
    query: { messageKey: options.key, messageId: options.id ?? randomId() },
    raw: {
      mediaType: options.mediaType ?? usual,
      content: bytes || typeof message === 'string' ? message : JSON.stringify(message),
    },
    signal: options.signal,
  });
}

export function publishMany(
  scope: Scope,
  topicName: string,
  messages: readonly object[],
  options: PublishManyOptions,
): Promise<NamedType<'PublishedMany'>> {
  const lines = messages.map((message) => JSON.stringify(message)).join('\n');
  return publishLines(scope, topicName, lines, options);
}

export function publishLines(
  scope: Scope,
  topicName: string,
  lines: string | Uint8Array<ArrayBuffer>,
  { keyPath, idPath, encoding, signal, organization }: PublishLinesOptions,
): Promise<NamedType<'PublishedMany'>> {
  return scope.transport.call('messages', {
    path: { organizationName: organizationOf(scope, { organization }), topicName },
    query: {
      ...(keyPath === undefined ? {} : { messageKeyPath: keyPath }),
      ...(idPath === undefined ? {} : { messageIdPath: idPath }),
    },
    raw: {
      mediaType: 'application/x-ndjson',
      content: lines,
      ...(encoding === undefined ? {} : { encoding }),
    },
    // With ids the service drops what it has already.
    repeat: idPath !== undefined,
    signal,
  });
}

import assert from 'node:assert/strict';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { address, contract } from './client.ts';
import type { Publisher } from './publisher.ts';
import { within } from './service.ts';
import { eventually } from './waiting.ts';

/** A message as a follower sees it. */
export interface FollowedMessage {
  readonly messageKey: string;
  readonly messageId: string;
  readonly acceptedAt: string;
  readonly body: unknown;
}

/** Somebody who follows a topic live. */
export interface Follower {
  readonly headers: IncomingMessage['headers'];
  /** The data of each message as it was sent. */
  texts(): readonly string[];
  /** The messages so far, once there are so many. */
  messages(count: number, milliseconds?: number): Promise<FollowedMessage[]>;
  /** Resolves when the service ends the stream as it should be ended. */
  ended(milliseconds: number): Promise<void>;
  /** Goes away without a word. */
  leave(): void;
}

/** Follows a topic. Everything that is accepted from the moment this resolves is heard. */
export async function follow(
  publisher: Publisher,
  topicName: string,
  query: { readonly messageKey?: string } = {},
): Promise<Follower> {
  const { organizationName, token } = publisher;
  const { sent, response } = await open(
    publisher.url,
    address(operation, { organizationName, topicName }, query),
    token,
  );
  assert.equal(response.statusCode, 200);
  let text = '';
  response.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const end = new Promise<void>((resolve, reject) => {
    response.once('end', resolve);
    response.once('error', reject);
  });
  end.catch(() => undefined);
  const texts = () => messagesIn(text);
  return {
    headers: response.headers,
    texts,
    messages: (count, milliseconds = 10_000) =>
      eventually(`${count} messages of ${topicName}`, milliseconds, () => {
        const found = texts();
        return found.length >= count ? found.map((each): FollowedMessage => JSON.parse(each)) : undefined;
      }),
    ended: (milliseconds) => within(end, milliseconds, `the stream goes on after ${milliseconds} ms`),
    leave: () => sent.destroy(),
  };
}

const operation = { ...contract.operations.tail, id: 'tail' };

async function open(url: string, target: string, token: string) {
  let sent: ClientRequest | undefined;
  const response = await within(
    new Promise<IncomingMessage>((resolve, reject) => {
      sent = request(`${url}${target}`, { agent: false, headers: { authorization: `Bearer ${token}` } });
      sent.once('response', resolve);
      sent.on('error', reject);
      sent.end();
    }),
    10_000,
    'no answer to a follower',
  );
  assert.ok(sent);
  return { sent, response };
}

/** Reads server-sent events strictly: a line of another form, or an event of another name, fails. */
function messagesIn(text: string): string[] {
  const found: string[] = [];
  for (const block of text.split('\n\n').slice(0, -1)) {
    if (/^:[^\r\n]*$/.test(block)) continue;
    const data = /^data: ([^\r\n]*)$/.exec(block)?.[1];
    assert.ok(data !== undefined, `a server-sent event: ${JSON.stringify(block.slice(0, 200))}`);
    found.push(data);
  }
  return found;
}

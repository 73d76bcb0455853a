import type { AnswerOf, Operations, QueryOf } from '@millrace/contract';
import { type Answer, address, checkAnswer, contract, read } from './client.ts';

/** Who publishes, and where. */
export interface Publisher {
  readonly url: string;
  readonly token: string;
  readonly organizationName: string;
}

type Headers = Readonly<Record<string, string>>;
type Loose<Query> = Partial<Query> | Readonly<Record<string, string>>;

const json: Headers = { 'content-type': 'application/json' };

/** Publishes one message. Text and bytes go as they are, anything else as JSON, under the headers given. */
export function publish(
  publisher: Publisher,
  topicName: string,
  body: unknown,
  query: Loose<QueryOf<Operations['message']>> = { messageKey: 'key' },
  headers: Headers = json,
): Promise<Answer<AnswerOf<Operations['message']>['body']>> {
  return post(publisher, 'message', topicName, body, query, headers);
}

/** Publishes many messages: a JSON array unless the headers say otherwise. */
export function publishMany(
  publisher: Publisher,
  topicName: string,
  body: unknown,
  query: Loose<QueryOf<Operations['messages']>> = {},
  headers: Headers = json,
): Promise<Answer<AnswerOf<Operations['messages']>['body']>> {
  return post(publisher, 'messages', topicName, body, query, headers);
}

/** The headers of NDJSON. */
export const lines: Headers = { 'content-type': 'application/x-ndjson' };

async function post<Body>(
  { url, token, organizationName }: Publisher,
  id: 'message' | 'messages',
  topicName: string,
  body: unknown,
  query: object,
  headers: Headers,
): Promise<Answer<Body>> {
  const operation = { ...contract.operations[id], id };
  const response = await fetch(`${url}${address(operation, { organizationName, topicName }, query)}`, {
    method: operation.method,
    headers: { authorization: `Bearer ${token}`, ...headers },
    // As bytes, because for a text a content type would be made up.
    body: bytesOf(body),
  });
  const answer = await read<Body>(response);
  checkAnswer(operation, answer);
  return answer;
}

function bytesOf(body: unknown): Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) return new Uint8Array(body);
  return new Uint8Array(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
}

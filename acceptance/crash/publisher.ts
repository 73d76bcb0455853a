import { gzipSync } from 'node:zlib';
import { type Answer, address, checkAnswer, contract, read } from '../harness/client.ts';

/** A message whose every byte follows from a few numbers, so that what comes back can be compared. */
export interface Message {
  readonly id: string;
  readonly key: string;
  /** Counts the messages of a key in the order they are sent. */
  readonly sequence: number;
  /** How many characters it is filled up with. */
  readonly filling: number;
}

/** How messages travel: alone, or many in one request. */
export type Form = 'message' | 'lines' | 'array' | 'zipped lines';

export interface Request {
  readonly form: Form;
  readonly topicName: string;
  readonly messages: readonly Message[];
}

export type Answered =
  /** The service said that it has them. */
  | { readonly kind: 'acknowledged'; readonly accepted: number; readonly duplicates: number }
  /** The service said that it does not take them. */
  | { readonly kind: 'refused'; readonly answer: Answer }
  /** The connection broke before the whole of an answer was there. */
  | { readonly kind: 'unknown' };

/** Whom to publish to, and as whom. */
export interface Account {
  readonly url: string;
  readonly organizationName: string;
  readonly token: string;
}

const answerMilliseconds = 30_000;

/** Sends one request. An answer that the contract does not allow is a fault, and so is none in time. */
export async function publish(account: Account, request: Request): Promise<Answered> {
  const isSingle = request.form === 'message';
  const operation = isSingle ? contract.operations.message : contract.operations.messages;
  const path = { organizationName: account.organizationName, topicName: request.topicName };
  const [first] = request.messages;
  const query = isSingle
    ? { messageKey: first?.key, messageId: first?.id }
    : { messageKeyPath: '/key', messageIdPath: '/id' };
  let answer: Answer;
  try {
    const response = await fetch(`${account.url}${address(operation, path, query)}`, {
      method: operation.method,
      headers: { authorization: `Bearer ${account.token}`, ...headersOf(request.form) },
      body: bodyOf(request),
      signal: AbortSignal.timeout(answerMilliseconds),
    });
    answer = await read(response);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'TimeoutError') {
      throw new Error(`no answer within ${answerMilliseconds} ms`, { cause: error });
    }
    return { kind: 'unknown' };
  }
  checkAnswer(operation, answer);
  if (answer.status !== 200) return { kind: 'refused', answer };
  return isSingle ? acknowledgedOne(answer, first) : acknowledgedMany(answer, request);
}

function acknowledgedOne(answer: Answer, message: Message | undefined): Answered {
  const { messageId, duplicate }: { messageId: string; duplicate: boolean } = JSON.parse(answer.text);
  if (messageId !== message?.id) throw new Error(`${message?.id} was acknowledged as ${messageId}`);
  return { kind: 'acknowledged', accepted: duplicate ? 0 : 1, duplicates: duplicate ? 1 : 0 };
}

function acknowledgedMany(answer: Answer, { messages }: Request): Answered {
  const { accepted, duplicates }: { accepted: number; duplicates: number } = JSON.parse(answer.text);
  if (accepted + duplicates !== messages.length) {
    throw new Error(`not all of ${messages.length} messages were acknowledged: ${answer.text}`);
  }
  return { kind: 'acknowledged', accepted, duplicates };
}

/** What is sent, and what must be in the log. */
export function textOf({ id, key, sequence, filling }: Message): string {
  return JSON.stringify({ id, key, sequence, filling: id.at(-1)?.repeat(filling) ?? '' });
}

function headersOf(form: Form): Record<string, string> {
  if (form === 'message' || form === 'array') return { 'content-type': 'application/json' };
  const lines = { 'content-type': 'application/x-ndjson' };
  return form === 'lines' ? lines : { ...lines, 'content-encoding': 'gzip' };
}

function bodyOf({ form, messages }: Request): string | Uint8Array<ArrayBuffer> {
  const texts = messages.map(textOf);
  if (form === 'array') return `[${texts.join(',')}]`;
  const lines = texts.join('\n');
  return form === 'zipped lines' ? new Uint8Array(gzipSync(lines)) : lines;
}

import { type IncomingMessage, request } from 'node:http';
import type { BodyOf, OperationId, Operations } from '@millrace/contract';
import { type Answer, address, checkAnswer, contract } from './client.ts';
import { within } from './service.ts';

/** Calls an operation from a given loopback address, as a visitor from elsewhere would. */
export async function callFrom<Id extends OperationId>(
  localAddress: string,
  url: string,
  id: Id,
  body: BodyOf<Operations[Id]>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const operation = contract.operations[id];
  const bytes = Buffer.from(JSON.stringify(body));
  const response = await within(
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        `${url}${address(operation, {})}`,
        {
          method: operation.method,
          localAddress,
          agent: false,
          headers: { 'content-type': 'application/json', 'content-length': bytes.byteLength, ...headers },
        },
        resolve,
      );
      sent.once('error', reject);
      sent.end(bytes);
    }),
    30_000,
    `no answer to ${id} from ${localAddress}`,
  );
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const answer = answerOf(response, Buffer.concat(chunks).toString('utf8'));
  checkAnswer(operation, answer);
  return answer;
}

function answerOf(response: IncomingMessage, text: string): Answer {
  const headers = new Headers();
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const isJson = /json/.test(headers.get('content-type') ?? '') && text !== '';
  return { status: response.statusCode ?? 0, headers, text, body: isJson ? JSON.parse(text) : undefined };
}

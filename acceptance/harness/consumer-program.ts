/** A program of somebody who has installed the packages: it compiles with their declarations, and only so. */
export const consumerProgram = `import { Millrace, MillraceError } from '@millrace/client';
import { log, publish, state, streamHandler } from '@millrace/runner';
import { testKit } from '@millrace/runner/testing';
import { buildContract } from '@millrace/contract';

export const handler = streamHandler<{ page: string }>(async ({ body, key, id }) => {
  const { attributes } = await state.increment(['page', body.page], 'views');
  await publish('out', { ...body, views: attributes.views }, { key, id });
  log.info('seen', { page: body.page });
});
const client = new Millrace({ endpoint: 'http://127.0.0.1:8080' });
const version: number = (await client.topics.definitions()).version;
// @ts-expect-error A version is a number.
const text: string = (await client.topics.definitions()).version;
using kit = testKit();
await kit.stream(handler, [{ body: { page: '/' } }]);
export { buildContract, MillraceError, text, version };
`;

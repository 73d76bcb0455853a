/** The files that the examples of the reference name, as somebody who follows it would have them. */

export const clicks = `{"id":"c1","user":"user-1","page":"/"}
{"id":"c2","user":"user-1","page":"/hats"}
{"id":"c3","user":"user-2","page":"/"}
`;

export const visits = `session,country
s1,DE
s1,DE
s2,FR
s3,DE
`;

/** A topic whose latest message of each key is kept. */
export const users = JSON.stringify({
  batch: {},
  store: { keys: [{ tableType: 'PRIMARY', pkParts: ['id'], rangePrefix: 'user' }], ttlInSec: 86_400 },
});

export const clicksSchema = JSON.stringify({
  type: 'object',
  properties: { page: { type: 'string' }, user: { type: 'string' }, id: { type: 'string' } },
});

export const hello = `export const handler = async (event: { name?: string }) => ({
  statusCode: 200,
  body: \`Hello \${event.name ?? 'you'}!\`,
});
`;

/** What a task that reads the stream clicks gets. */
export const batch = JSON.stringify({
  Records: [
    {
      messageId: 'm1',
      body: JSON.stringify({ page: '/shoes' }),
      attributes: {
        MessageGroupId: 'user-1',
        MessageDeduplicationId: 'c9',
        SentTimestamp: '1700000000000',
        ApproximateReceiveCount: '1',
        SequenceNumber: '1',
      },
      eventSourceARN: 'clicks',
    },
  ],
});

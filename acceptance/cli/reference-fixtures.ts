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

/** A runtime in a shell that needs no other program: it answers every event with the event. */
export const bootstrap = `#!/bin/bash
host=\${AWS_LAMBDA_RUNTIME_API%:*} port=\${AWS_LAMBDA_RUNTIME_API##*:}
ask() {
  exec 3<> "/dev/tcp/$host/$port" || exit 1
  printf '%s /2018-06-01/runtime/invocation/%s HTTP/1.0\\r\\n' "$1" "$2" >&3
  printf 'host: %s\\r\\ncontent-length: %d\\r\\n\\r\\n%s' "$host" "\${#3}" "$3" >&3
  while IFS=': ' read -r name value <&3 && [ "$name" != $'\\r' ]; do
    if [ "\${name,,}" = lambda-runtime-aws-request-id ]; then id=\${value%$'\\r'}; fi
  done
  IFS= read -r -d '' answer <&3
  exec 3>&-
}
while true; do
  ask GET next ''
  ask POST "$id/response" "{\\"handler\\":\\"$_HANDLER\\",\\"event\\":$answer}"
done
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

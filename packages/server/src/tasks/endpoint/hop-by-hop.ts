/** Headers that are about one connection, which the next one has no use for. */
const always = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The names of the headers that end with the connection, those that it names itself included. */
export function hopByHop(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return always;
  const named = connection.split(',').map((name) => name.trim().toLowerCase());
  return new Set([...always, ...named]);
}

import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface Relay {
  close(): void;
}

const connections = 1024;

/** Makes a socket file lead to the service's own port, for processes that have no network. */
export async function openRelay(
  socketPath: string,
  target: () => { readonly host: string; readonly port: number },
): Promise<Relay> {
  const open = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (near) => {
    const { host, port } = target();
    const far = connect({ host: dialled(host), port, allowHalfOpen: true, noDelay: true });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.once('close', () => open.delete(one));
      one.on('error', () => other.destroy());
      one.pipe(other);
    }
  });
  server.maxConnections = connections;
  server.listen(socketPath);
  await once(server, 'listening');
  chmodSync(socketPath, 0o666);
  return {
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** A service that listens everywhere is reached on loopback. */
export function dialled(host: string): string {
  if (host === '0.0.0.0' || host === '') return '127.0.0.1';
  return host === '::' || host === '[::]' ? '::1' : host;
}

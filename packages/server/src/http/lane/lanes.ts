import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { fastLane } from './fast-lane.ts';
import type { LaneParts } from './passage.ts';
import { SocketLane } from './socket-lane.ts';

export interface LaneTimeouts {
  readonly keepAliveMilliseconds: number;
  readonly idleMilliseconds: number;
}

/** Puts the lanes in front of the framework: one before Node's parser, one behind it. */
export function openLanes(app: FastifyInstance, timeouts: LaneTimeouts, parts: LaneParts): void {
  const { server } = app;
  const lane = fastLane(parts);
  server.removeAllListeners('request').on('request', (request, response) => {
    if (!lane(request, response)) app.routing(request, response);
  });

  const listeners = server.listeners('connection');
  const sockets = new SocketLane({
    parts,
    ...timeouts,
    handOver(socket, bytes) {
      for (const listener of listeners) listener.call(server, socket);
      if (bytes !== undefined) socket.emit('data', bytes);
    },
  });
  server.removeAllListeners('connection').on('connection', (socket: Socket) => sockets.take(socket));
  // What Node knows of its own connections does not reach those of the lane.
  const closeAll = server.closeAllConnections.bind(server);
  server.closeAllConnections = () => {
    sockets.cut();
    closeAll();
  };
  app.addHook('preClose', (done) => {
    sockets.drain();
    done();
  });
  app.addHook('onClose', (_app, done) => {
    sockets.close();
    done();
  });
}

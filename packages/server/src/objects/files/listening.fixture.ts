import fastify, { type FastifyInstance } from 'fastify';
import type { Clock } from '../../platform/clock.ts';
import type { ObjectStore } from '../objects.ts';
import { type ObjectRefusal, registerObjectRoutes } from './routes.ts';
import type { UrlSigner } from './signature.ts';

const statuses: Record<ObjectRefusal, number> = {
  SIGNATURE_INVALID: 403,
  OBJECT_NOT_FOUND: 404,
  ALREADY_UPLOADED: 409,
  LENGTH_MISMATCH: 400,
  RANGE_NOT_SATISFIABLE: 416,
  STORAGE_FULL: 503,
};

/** A real app with the object routes, listening on loopback. */
export async function listen(
  dependencies: { store: ObjectStore; signer: UrlSigner; clock: Clock },
  prepare: (app: FastifyInstance) => void = () => {},
): Promise<{ app: FastifyInstance; url: string }> {
  // A refused upload may still be arriving when a test ends; nobody waits for the rest of it.
  const app = fastify({ bodyLimit: 1024, forceCloseConnections: true });
  prepare(app);
  registerObjectRoutes(app, {
    ...dependencies,
    refuse: (reply, code, detail) => reply.code(statuses[code]).send({ code, detail }),
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, url };
}

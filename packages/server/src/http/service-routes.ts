import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SigningKeys } from '../identity/signing-keys.ts';
import type { Metrics } from '../platform/metrics.ts';
import { problem } from '../platform/problem.ts';
import type { KnownPaths } from './not-found.ts';
import { sendProblem } from './problems.ts';

export interface ServiceRouteParts {
  readonly metrics: Metrics;
  readonly signingKeys: SigningKeys;
  /** Resolves when the engines answer. */
  readonly check: () => Promise<void>;
  readonly isDraining: () => boolean;
}

const readinessMilliseconds = 3000;

/** What is about the service itself rather than an operation of it: health, figures and public keys. */
export function registerServiceRoutes(
  app: FastifyInstance,
  parts: ServiceRouteParts,
  paths: KnownPaths,
): void {
  const get = (
    url: string,
    operation: string,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ) => {
    app.get(url, { config: { operation } }, handler);
    paths.add(url, ['GET', 'HEAD']);
  };

  get('/livez', 'livez', async () => ({ status: 'ok' }));

  get('/readyz', 'readyz', async (_request, reply) => {
    if (parts.isDraining())
      return sendProblem(reply, problem('SHUTTING_DOWN', undefined, { retryAfterSeconds: 5 }));
    try {
      await withLimit(parts.check(), readinessMilliseconds);
      return { status: 'ok' };
    } catch {
      return sendProblem(
        reply,
        problem('STORAGE_FULL', 'An engine does not answer.', { retryAfterSeconds: 5 }),
      );
    }
  });

  get('/metrics', 'metrics', async (_request, reply) => {
    const { contentType, text } = await parts.metrics.render();
    return reply.header('content-type', contentType).send(text);
  });

  get('/.well-known/jwks.json', 'jwks', async (_request, reply) => {
    const keys = await parts.signingKeys.published();
    return reply
      .header('cache-control', 'public, max-age=300')
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify({ keys }));
  });
}

async function withLimit<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), milliseconds);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

import { type Contract, openApiDocument } from '@millrace/contract';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { problem } from '../platform/problem.ts';
import { version } from '../platform/version.ts';
import type { KnownPaths } from './not-found.ts';
import { sendProblem } from './problems.ts';

export interface DocumentationParts {
  readonly contract: Contract;
  readonly publicUrl: () => string;
}

/**
 * The OpenAPI document and the pages for people. They never change while the process runs and are seldom
 * asked for, so they are loaded and made when first needed, and starting the service does not wait for them.
 */
export function registerDocumentationRoutes(
  app: FastifyInstance,
  parts: DocumentationParts,
  paths: KnownPaths,
): void {
  const pages = () => import('./docs/index.ts');
  for (const url of ['/', '/docs', '/docs/errors', '/docs/errors/:code', '/openapi.json']) {
    paths.add(url, ['GET', 'HEAD']);
  }
  const config = { operation: 'documentation' };

  const sendPage = async (reply: FastifyReply, html: string) => {
    const { docsContentSecurityPolicy } = await pages();
    return reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', docsContentSecurityPolicy)
      .send(html);
  };

  let document: string | undefined;
  app.get('/openapi.json', { config }, async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(parts.contract, { serverUrl: parts.publicUrl(), version }));
    return reply.header('content-type', 'application/json; charset=utf-8').send(document);
  });

  let reference: string | undefined;
  app.get('/docs', { config }, async (_request, reply) => {
    const { docsPage } = await pages();
    reference ??= docsPage(parts.contract, {
      baseUrl: parts.publicUrl(),
      version,
    });
    return sendPage(reply, reference);
  });

  app.get('/docs/errors', { config }, async (_request, reply) => {
    const { errorIndexPage } = await pages();
    return sendPage(reply, errorIndexPage());
  });

  app.get<{ Params: { code: string } }>('/docs/errors/:code', { config }, async (request, reply) => {
    const { errorCodeFromPath, errorPage } = await pages();
    const code = errorCodeFromPath(request.params.code);
    if (code === undefined)
      return sendProblem(reply, problem('NOT_FOUND', 'There is no error of this name.'));
    return sendPage(reply, errorPage(code));
  });

  app.get('/', { config }, async (_request, reply) => reply.redirect('/docs', 302));
}

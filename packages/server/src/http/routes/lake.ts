import type { Limits } from '@millrace/contract';
import type { Lake } from '../../lake/lake.ts';
import { timestamp } from '../../platform/clock.ts';
import type { PageTokens } from '../../platform/page-token.ts';
import { Problem, problem } from '../../platform/problem.ts';
import { answer, type HandlersOf } from '../handlers.ts';

/** The files of a page when the request does not say. */
const usualPage = 100;

export function lakeHandlers(
  lake: Lake,
  pageTokens: PageTokens,
  limits: Limits,
): HandlersOf<
  | 'getTopicSchema'
  | 'updateTopicSchema'
  | 'recalculateTopicSchema'
  | 'listTopicFiles'
  | 'getTopicFileDownloadUrl'
> {
  return {
    getTopicSchema: async ({ organization, path }) =>
      schemaAnswer(await lake.schema(organization, path.topicName)),
    updateTopicSchema: async ({ organization, path, body }) => {
      const outcome = await lake.updateSchema(organization, path.topicName, body.schema);
      if (outcome instanceof Problem) return outcome;
      return { status: outcome === 'changed' ? 201 : 200, body: undefined };
    },
    recalculateTopicSchema: async ({ organization, path, stopping }) =>
      schemaAnswer(await lake.recalculateSchema(organization, path.topicName, stopping)),
    listTopicFiles: async ({ organization, path, query }) => {
      const { prefix = '', maxResults = Math.min(usualPage, limits.filesPage), nextToken } = query;
      const scope = [organization.id, 'listTopicFiles', path.topicName, prefix];
      const after = nextToken === undefined ? undefined : pageTokens.open(scope, nextToken);
      if (nextToken !== undefined && after === undefined) return problem('TOKEN_INVALID');
      const page = await lake.listFiles(organization, path.topicName, { prefix, after, limit: maxResults });
      if (page instanceof Problem) return page;
      const files = page.files.map(({ key, bytes, createdAt }) => ({
        key,
        size: bytes,
        lastModified: timestamp(createdAt),
      }));
      return answer(
        page.next === undefined ? { files } : { files, nextToken: pageTokens.seal(scope, page.next) },
      );
    },
    getTopicFileDownloadUrl: async ({ organization, path, query }) => {
      const found = await lake.downloadUrl(organization, path.topicName, query.key);
      if (found instanceof Problem) return found;
      return answer({ url: found.url, expiresAt: timestamp(found.expiresAt) });
    },
  };
}

function schemaAnswer(schema: string | Problem) {
  return schema instanceof Problem ? schema : answer({ schema, format: 'JSON' as const });
}

import type { Limits } from '@millrace/contract';
import type { PageTokens } from '../../platform/page-token.ts';
import { Problem, problem } from '../../platform/problem.ts';
import type { State } from '../../state/state.ts';
import { answer, type HandlersOf } from '../handlers.ts';

/** The entries of a page when the request does not say. */
const usualPage = 50;

export function stateHandlers(
  state: State,
  pageTokens: PageTokens,
  limits: Limits,
): HandlersOf<'getState' | 'listState' | 'upsertState' | 'deleteState' | 'incrementState'> {
  return {
    getState: async ({ body, organization }) =>
      answerOrProblem(await state.get(organization.id, body.keyParts)),
    listState: async ({ body, organization }) => {
      const { keyPrefix = [], cursor, limit = Math.min(usualPage, limits.statePage) } = body;
      const scope = [organization.id, 'listState', ...keyPrefix];
      const after = cursor === undefined ? undefined : pageTokens.open(scope, cursor);
      if (cursor !== undefined && after === undefined) return problem('TOKEN_INVALID');
      const page = await state.list(organization.id, { keyPrefix, after, limit });
      if (page instanceof Problem) return page;
      const { entries, next } = page;
      return answer(next === undefined ? { entries } : { entries, nextCursor: pageTokens.seal(scope, next) });
    },
    upsertState: async ({ body, organization }) => answerOrProblem(await state.upsert(organization.id, body)),
    deleteState: async ({ body, organization }) =>
      (await state.delete(organization.id, body.keyParts)) ?? { status: 204, body: undefined },
    incrementState: async ({ body, organization }) =>
      answerOrProblem(await state.increment(organization.id, body)),
  };
}

function answerOrProblem<Body>(outcome: Body | Problem) {
  return outcome instanceof Problem ? outcome : answer(outcome);
}

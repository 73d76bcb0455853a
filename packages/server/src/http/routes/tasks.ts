import type { Limits } from '@millrace/contract';
import type { PageTokens } from '../../platform/page-token.ts';
import { Problem, problem } from '../../platform/problem.ts';
import { describeLine, logEvents } from '../../tasks/logs/log-events.ts';
import type { TaskLog } from '../../tasks/logs/task-log.ts';
import type { TaskService } from '../../tasks/task-service.ts';
import type { TaskAddress } from '../../tasks/task-store.ts';
import { answer, type HandlersOf, stream } from '../handlers.ts';

/** The entries of a page when the request does not say. */
const usualPage = 100;

type TaskOperations =
  | 'uploadCode'
  | 'deployVersion'
  | 'deployVersionCheck'
  | 'activateVersion'
  | 'getVersions'
  | 'pause'
  | 'resume'
  | 'delete'
  | 'status'
  | 'statusAll'
  | 'taskLogs'
  | 'invoke'
  | 'listDeadLetters'
  | 'redriveDeadLetters'
  | 'purgeDeadLetters';

export function taskHandlers(
  { tasks, deployments, invocations, deadLetters }: TaskService,
  logs: TaskLog,
  pageTokens: PageTokens,
  limits: Limits,
): HandlersOf<TaskOperations> {
  return {
    uploadCode: async ({ body, organization }) => answer(await deployments.upload(organization.id, body)),
    deployVersion: async ({ body, headers, organization, path }) => {
      const begun = await deployments.deploy(organization, path.taskId, path.sessionId, body);
      if (begun instanceof Problem) return begun;
      if (headers.invocationtype === 'Event') return { status: 202, body: undefined };
      return answerOrProblem(await begun.done);
    },
    deployVersionCheck: async ({ organization, path }) =>
      answer(await deployments.check(addressOf(organization, path), path.sessionId)),
    activateVersion: async ({ organization, path, query }) =>
      answerOrProblem(await tasks.activate(organization, path.taskId, query.version)),
    getVersions: async ({ organization, path }) => {
      const found = await tasks.versions(addressOf(organization, path));
      if (found instanceof Problem) return found;
      const { endpointUrl } = found.status;
      return answer({ ...found, ...(endpointUrl === undefined ? {} : { endpointUrl }) });
    },
    pause: async ({ organization, path }) =>
      answerOrProblem(await tasks.pause(addressOf(organization, path))),
    resume: async ({ organization, path }) =>
      answerOrProblem(await tasks.resume(addressOf(organization, path))),
    delete: async ({ organization, path }) =>
      answerOrProblem(await tasks.delete(addressOf(organization, path))),
    status: async ({ organization, path }) => answer(await tasks.status(addressOf(organization, path))),
    statusAll: async ({ organization, query }) => {
      const scope = [organization.id, 'statusAll'];
      const after = query.cursor === undefined ? undefined : pageTokens.open(scope, query.cursor);
      if (query.cursor !== undefined && after === undefined) return problem('TOKEN_INVALID');
      const page = await tasks.statusAll(organization.id, after);
      const { next } = page;
      return answer({
        tasks: page.tasks,
        ...(next === undefined ? {} : { cursor: pageTokens.seal(scope, next) }),
      });
    },
    taskLogs: async ({ organization, path, query, accept, stopping, stillAllowed }) => {
      const address = addressOf(organization, path);
      if (!(await tasks.exists(address))) return problem('TASK_NOT_FOUND');
      const { cursor, since, limit = Math.min(usualPage, limits.logsPage) } = query;
      const scope = [organization.id, 'taskLogs', path.taskId, since ?? ''];
      const after = cursor === undefined ? undefined : pageTokens.open(scope, cursor);
      if (cursor !== undefined && after === undefined) return problem('TOKEN_INVALID');
      if (asksForEvents(accept)) {
        const follow = (signal: AbortSignal) => logs.follow(organization.id, path.taskId, signal, after);
        return stream('text/event-stream; charset=utf-8', logEvents(follow, stopping, { stillAllowed }));
      }
      const from = since === undefined ? undefined : Date.parse(since);
      const isNewest = after === undefined && from === undefined;
      const listing = { since: from, after, newest: isNewest, limit };
      const { lines, next } = await logs.list(organization.id, path.taskId, listing);
      return answer({
        lines: lines.map(describeLine),
        ...(next === undefined ? {} : { nextCursor: pageTokens.seal(scope, next) }),
      });
    },
    invoke: async ({ organization, path, body }) => {
      const outcome = await invocations.invoke(addressOf(organization, path), body.event);
      if (outcome instanceof Problem) return outcome;
      return answer({ ...outcome, logs: outcome.logs.map(describeLine) });
    },
    listDeadLetters: async ({ organization, path, query }) => {
      const { cursor, limit = Math.min(usualPage, limits.deadLettersPage) } = query;
      const scope = [organization.id, 'listDeadLetters', path.taskId];
      const after = cursor === undefined ? undefined : pageTokens.open(scope, cursor);
      if (cursor !== undefined && after === undefined) return problem('TOKEN_INVALID');
      const page = await deadLetters.list(addressOf(organization, path), after, limit);
      if (page instanceof Problem) return page;
      const { entries, next } = page;
      return answer({ entries, ...(next === undefined ? {} : { nextCursor: pageTokens.seal(scope, next) }) });
    },
    redriveDeadLetters: async ({ organization, path, body }) => {
      const redriven = await deadLetters.redrive(addressOf(organization, path), body.ids);
      return redriven instanceof Problem ? redriven : answer({ redriven });
    },
    purgeDeadLetters: async ({ organization, path }) => {
      const purged = await deadLetters.purge(addressOf(organization, path));
      return purged instanceof Problem ? purged : answer({ purged });
    },
  };
}

function addressOf(organization: { id: string }, path: { taskId: string }): TaskAddress {
  return { organizationId: organization.id, taskId: path.taskId };
}

function answerOrProblem<Body>(outcome: Body | Problem) {
  return outcome instanceof Problem ? outcome : answer(outcome);
}

function asksForEvents(accept: string | undefined): boolean {
  return accept !== undefined && /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(accept);
}

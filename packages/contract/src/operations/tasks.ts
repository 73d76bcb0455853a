import Type from 'typebox';
import { bodyOf } from '../body-bytes.ts';
import type { Limits } from '../limits.ts';
import {
  Identifier,
  inOrganization,
  inTask,
  OrganizationName,
  PageToken,
  pageSize,
  strict,
  TaskId,
} from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { invocationTypes } from '../types/tasks.ts';
import { enrich, organization, taskStatus } from './examples.ts';

const viewer = { kind: 'organization', role: 'VIEWER' } as const;
const member = { kind: 'organization', role: 'MEMBER' } as const;
const inDeployment = strict({ organizationName: OrganizationName, taskId: TaskId, sessionId: Identifier });
const deployment = { ...enrich, sessionId: 'd8Jm2nXv5KpLw3RtYb7Zc1' } as const;
const taskVersion = { taskId: 'enrich', version: '3', description: 'adds the country' } as const;
const logLine = {
  time: '2026-11-15T09:30:00.000Z',
  version: '3',
  requestId: 'r9Kx2LmQ7vRt4WbYc8Zn3J',
  stream: 'stdout',
  text: 'enriched 10 clicks',
} as const;

export function taskOperations(types: Types, limits: Limits) {
  return defineOperations({
    uploadCode: {
      method: 'PUT',
      path: '/v1/organization/{organizationName}/control/code/upload',
      group: 'Tasks',
      summary: 'Get a URL to upload code to',
      description:
        'Send the zip to presignedUrl with PUT, then call deployVersion with sessionId and codeUrl.',
      access: member,
      parameters: { path: inOrganization },
      body: { schema: types.UploadCodeRequest },
      responses: { 200: { description: 'Where to upload.', schema: types.UploadCodeResponse } },
      example: {
        path: organization,
        body: { taskId: 'enrich', contentLengthBytes: 48213 },
        response: {
          sessionId: deployment.sessionId,
          presignedUrl: 'http://127.0.0.1:8080/v1/objects/code/acme/enrich.zip?signature=...',
          codeUrl: 'code:d8Jm2nXv5KpLw3RtYb7Zc1',
        },
      },
    },
    deployVersion: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/deploy/{sessionId}',
      group: 'Tasks',
      summary: 'Deploy uploaded code as a new version',
      description:
        'With InvocationType RequestResponse the answer waits for the deployment; with Event it is 202 at once and deployVersionCheck tells how it went.',
      access: member,
      parameters: {
        path: inDeployment,
        headers: strict({
          invocationtype: Type.Unsafe<(typeof invocationTypes)[number]>({
            type: 'string',
            enum: [...invocationTypes],
            title: 'InvocationType',
            description: 'Whether to wait for the deployment.',
          }),
        }),
      },
      body: { schema: types.DeployRequest },
      responses: {
        200: { description: 'Deployed.', schema: types.TaskVersion },
        202: { description: 'Under way.' },
      },
      problems: ['CODE_INVALID', 'RUNTIME_MISSING', 'TASK_CYCLE', 'SESSION_USED'],
      limits: { bodyBytes: bodyOf(types.DeployRequest) },
      example: {
        path: deployment,
        headers: { InvocationType: 'RequestResponse' },
        body: {
          codeUrl: 'code:d8Jm2nXv5KpLw3RtYb7Zc1',
          handler: 'index.handler',
          inputQueueNames: ['clicks'],
          outputQueueNames: ['enriched'],
          switchToNow: true,
          runtime: 'NODEJS26_X',
        },
        response: taskVersion,
      },
    },
    deployVersionCheck: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/deploy/{sessionId}',
      group: 'Tasks',
      summary: 'Ask how a deployment went',
      access: viewer,
      parameters: { path: inDeployment },
      responses: { 200: { description: 'Its state.', schema: types.DeployVersionCheckResponse } },
      example: { path: deployment, response: { status: 'SUCCESS', result: taskVersion } },
    },
    activateVersion: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/activate',
      group: 'Tasks',
      summary: 'Make a version the active one',
      access: member,
      parameters: {
        path: inTask,
        query: strict({
          version: Type.String({ minLength: 1, maxLength: 64, description: 'Which version, such as 3.' }),
        }),
      },
      responses: { 200: { description: 'The task.', schema: types.TaskStatus } },
      problems: ['TASK_NOT_FOUND', 'VERSION_NOT_FOUND'],
      example: { path: enrich, query: { version: '3' }, response: taskStatus },
    },
    getVersions: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/versions',
      group: 'Tasks',
      summary: 'List the versions of a task',
      access: viewer,
      parameters: { path: inTask },
      responses: { 200: { description: 'The versions.', schema: types.TaskVersions } },
      problems: ['TASK_NOT_FOUND'],
      example: { path: enrich, response: { status: taskStatus, versions: [taskVersion] } },
    },
    pause: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/pause',
      group: 'Tasks',
      summary: 'Pause a task',
      description: 'Work in hand is finished; messages wait.',
      access: member,
      parameters: { path: inTask },
      responses: { 200: { description: 'The task.', schema: types.TaskStatus } },
      problems: ['TASK_NOT_FOUND'],
      example: { path: enrich, response: { ...taskStatus, status: 'PAUSED' } },
    },
    resume: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/resume',
      group: 'Tasks',
      summary: 'Resume a paused task',
      access: member,
      parameters: { path: inTask },
      responses: { 200: { description: 'The task.', schema: types.TaskStatus } },
      problems: ['TASK_NOT_FOUND'],
      example: { path: enrich, response: { ...taskStatus, status: 'STARTING' } },
    },
    delete: {
      method: 'DELETE',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/delete',
      group: 'Tasks',
      summary: 'Delete a task with its versions',
      description: 'Messages in its streams stay.',
      access: member,
      parameters: { path: inTask },
      responses: { 200: { description: 'The task, now NOTFOUND.', schema: types.TaskStatus } },
      example: { path: enrich, response: { taskId: 'enrich', status: 'NOTFOUND' } },
    },
    status: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/status/',
      group: 'Tasks',
      summary: 'Read the status of a task',
      access: viewer,
      parameters: { path: inTask },
      responses: { 200: { description: 'The task.', schema: types.TaskStatus } },
      example: { path: enrich, response: taskStatus },
    },
    statusAll: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/status',
      group: 'Tasks',
      summary: 'List the tasks',
      access: viewer,
      parameters: { path: inOrganization, query: strict({ cursor: Type.Optional(PageToken) }) },
      responses: { 200: { description: 'A page of tasks.', schema: types.TaskStatuses } },
      problems: ['TOKEN_INVALID'],
      example: { path: organization, response: { tasks: [taskStatus] } },
    },
    taskLogs: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/logs',
      group: 'Tasks',
      summary: 'Read what a task printed',
      description: 'Newest last. With `Accept: text/event-stream` the lines come live.',
      access: viewer,
      parameters: {
        path: inTask,
        query: strict({
          since: Type.Optional(
            Type.String({ format: 'date-time', description: 'Only lines from this time on.' }),
          ),
          cursor: Type.Optional(PageToken),
          limit: Type.Optional(pageSize(Math.min(100, limits.logsPage), limits.logsPage)),
        }),
      },
      responses: {
        200: { description: 'A page of lines.', schema: types.TaskLogs, mediaTypes: ['text/event-stream'] },
      },
      problems: ['TASK_NOT_FOUND', 'TOKEN_INVALID'],
      example: { path: enrich, query: { limit: 100 }, response: { lines: [logLine] } },
    },
    invoke: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/invoke',
      group: 'Tasks',
      summary: 'Run a task once with a given event',
      access: member,
      parameters: { path: inTask },
      body: { schema: types.InvokeRequest },
      responses: { 200: { description: 'What it returned or threw.', schema: types.InvokeResponse } },
      problems: ['TASK_NOT_FOUND'],
      limits: { bodyBytes: limits.invokeBytes },
      example: {
        path: enrich,
        body: { event: { page: '/pricing' } },
        response: { result: { page: '/pricing', country: 'NL' }, logs: [logLine], durationMs: 4.2 },
      },
    },
    listDeadLetters: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
      group: 'Tasks',
      summary: 'List messages that the task gave up on',
      access: viewer,
      parameters: {
        path: inTask,
        query: strict({
          cursor: Type.Optional(PageToken),
          limit: Type.Optional(pageSize(Math.min(100, limits.deadLettersPage), limits.deadLettersPage)),
        }),
      },
      responses: { 200: { description: 'A page of dead letters.', schema: types.DeadLetters } },
      problems: ['TASK_NOT_FOUND', 'TOKEN_INVALID'],
      example: {
        path: enrich,
        response: {
          entries: [
            {
              id: 'm4Kx2LmQ7vRt9WbYc8Zn3J',
              topic: 'clicks',
              stream: 'clicks',
              messageKey: 'user-42',
              messageId: 'c-1001',
              body: '{"page":null}',
              attempts: 5,
              error: 'TypeError: page is null',
              failedAt: '2026-11-15T09:30:00.000Z',
            },
          ],
        },
      },
    },
    redriveDeadLetters: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
      group: 'Tasks',
      summary: 'Give dead letters to the task again',
      access: member,
      parameters: { path: inTask },
      body: { schema: types.RedriveRequest, optional: true },
      responses: { 200: { description: 'How many.', schema: types.Redriven } },
      problems: ['TASK_NOT_FOUND'],
      limits: { bodyBytes: bodyOf(types.RedriveRequest) },
      example: { path: enrich, body: { ids: ['m4Kx2LmQ7vRt9WbYc8Zn3J'] }, response: { redriven: 1 } },
    },
    purgeDeadLetters: {
      method: 'DELETE',
      path: '/v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
      group: 'Tasks',
      summary: 'Throw the dead letters away',
      access: member,
      parameters: { path: inTask },
      responses: { 200: { description: 'How many.', schema: types.Purged } },
      problems: ['TASK_NOT_FOUND'],
      example: { path: enrich, response: { purged: 1 } },
    },
    taskEndpoint: {
      method: 'ANY',
      path: '/v1/organization/{organizationName}/endpoint/{taskId}/*',
      group: 'Tasks',
      summary: "Call a task's own HTTP endpoint",
      description: 'Any method and path. Public or members only, as the task was deployed.',
      access: { kind: 'deployment' },
      parameters: { path: inTask },
      body: { raw: true, description: 'Whatever the task takes.', mediaTypes: ['any'] },
      responses: { 200: { description: 'Whatever the task answers.', mediaTypes: ['*/*'] } },
      problems: ['TASK_NOT_FOUND', 'TASK_FAILED', 'TASK_TIMED_OUT'],
      limits: { bodyBytes: limits.invokeBytes },
      example: { path: { ...enrich, '*': 'hello' } },
    },
  });
}

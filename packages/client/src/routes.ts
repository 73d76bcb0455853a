import type { Operations } from '@millrace/contract';

/** An operation that this client calls; the endpoint of a task has methods of its own. */
export type CallableId = Exclude<keyof Operations, 'taskEndpoint'>;

/**
 * Method and path of every operation. The contract itself needs a schema library at run time, and this
 * client needs nothing; the type holds each line to the contract, so a difference does not compile.
 */
export const routes: {
  readonly [Id in CallableId]: `${Operations[Id]['method']} ${Operations[Id]['path']}`;
} = {
  signUp: 'PUT /v1/auth/sign-up',
  signUpConfirmCode: 'PUT /v1/auth/sign-up/code',
  signIn: 'POST /v1/auth/sign-in',
  signInChallengeTotpCode: 'POST /v1/auth/sign-in/totp',
  signInChallengePasswordChange: 'POST /v1/auth/sign-in/password-change',
  signInRefreshToken: 'POST /v1/auth/sign-in/refresh',
  signOut: 'POST /v1/auth/sign-out',
  passwordForgot: 'POST /v1/auth/password/forgot',
  passwordReset: 'POST /v1/auth/password/reset',
  passwordChange: 'POST /v1/auth/password/change',
  totpEnrol: 'POST /v1/auth/totp',
  totpConfirm: 'POST /v1/auth/totp/confirm',
  totpRemove: 'POST /v1/auth/totp/remove',
  whoAmI: 'GET /v1/auth/me',
  createOrganization: 'PUT /v1/organizations/create',
  inviteToOrganization: 'POST /v1/organization/{organizationName}/invite',
  listMembers: 'GET /v1/organization/{organizationName}/members',
  setMemberRole: 'PATCH /v1/organization/{organizationName}/members/{username}',
  removeMember: 'DELETE /v1/organization/{organizationName}/members/{username}',
  rateLimitGet: 'GET /v1/organization/{organizationName}/ratelimit',
  rateLimitAdjust: 'PATCH /v1/organization/{organizationName}/ratelimit',
  createApiKey: 'PUT /v1/organization/{organizationName}/auth/apikey',
  listApiKeys: 'POST /v1/organization/{organizationName}/auth/apikeys',
  revokeApiKey: 'DELETE /v1/organization/{organizationName}/auth/apikey/{apiKeyId}',
  uploadCode: 'PUT /v1/organization/{organizationName}/control/code/upload',
  deployVersion: 'PATCH /v1/organization/{organizationName}/control/task/{taskId}/deploy/{sessionId}',
  deployVersionCheck: 'GET /v1/organization/{organizationName}/control/task/{taskId}/deploy/{sessionId}',
  activateVersion: 'PATCH /v1/organization/{organizationName}/control/task/{taskId}/activate',
  getVersions: 'GET /v1/organization/{organizationName}/control/task/{taskId}/versions',
  pause: 'PATCH /v1/organization/{organizationName}/control/task/{taskId}/pause',
  resume: 'PATCH /v1/organization/{organizationName}/control/task/{taskId}/resume',
  delete: 'DELETE /v1/organization/{organizationName}/control/task/{taskId}/delete',
  status: 'GET /v1/organization/{organizationName}/control/task/{taskId}/status/',
  statusAll: 'GET /v1/organization/{organizationName}/control/status',
  taskLogs: 'GET /v1/organization/{organizationName}/control/task/{taskId}/logs',
  invoke: 'POST /v1/organization/{organizationName}/control/task/{taskId}/invoke',
  listDeadLetters: 'GET /v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
  redriveDeadLetters: 'POST /v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
  purgeDeadLetters: 'DELETE /v1/organization/{organizationName}/control/task/{taskId}/dead-letters',
  getTopics: 'GET /v1/organization/{organizationName}/topics',
  updateDefaultTopic: 'PATCH /v1/organization/{organizationName}/topic/default',
  updateTopic: 'PATCH /v1/organization/{organizationName}/topic/{topicName}',
  deleteTopic: 'DELETE /v1/organization/{organizationName}/topic/{topicName}',
  getTopicSchema: 'GET /v1/organization/{organizationName}/topic/{topicName}/schema',
  updateTopicSchema: 'PUT /v1/organization/{organizationName}/topic/{topicName}/schema',
  recalculateTopicSchema: 'POST /v1/organization/{organizationName}/topic/{topicName}/schema',
  listTopicFiles: 'GET /v1/organization/{organizationName}/topic/{topicName}/files',
  getTopicFileDownloadUrl: 'GET /v1/organization/{organizationName}/topic/{topicName}/files/download',
  message: 'POST /v1/organization/{organizationName}/topic/{topicName}/message',
  messages: 'POST /v1/organization/{organizationName}/topic/{topicName}/messages',
  tail: 'GET /v1/organization/{organizationName}/topic/{topicName}/tail',
  getState: 'POST /v1/organization/{organizationName}/state/get',
  listState: 'POST /v1/organization/{organizationName}/state/list',
  upsertState: 'POST /v1/organization/{organizationName}/state/upsert',
  deleteState: 'POST /v1/organization/{organizationName}/state/delete',
  incrementState: 'POST /v1/organization/{organizationName}/state/increment',
  submitQuery: 'POST /v1/organization/{organizationName}/query/submit',
  getQueryStatus: 'GET /v1/organization/{organizationName}/query/{queryExecutionId}/status',
  getQueryResults: 'GET /v1/organization/{organizationName}/query/{queryExecutionId}/results',
  getQueryHistory: 'GET /v1/organization/{organizationName}/query/history',
  getDatabaseSchema: 'GET /v1/organization/{organizationName}/query/schema',
  cancelQuery: 'POST /v1/organization/{organizationName}/query/{queryExecutionId}/cancel',
  exportQuery: 'GET /v1/organization/{organizationName}/query/{queryExecutionId}/export',
  ping: 'GET /v1/health',
};

/**
 * Operations that may be sent once more when nobody knows whether the first one arrived: doing them twice
 * is the same as doing them once. `message` is among them because the client always gives it an id.
 */
const repeatable: ReadonlySet<string> = new Set<CallableId>([
  'message',
  'listApiKeys',
  'getState',
  'listState',
  'deleteState',
  'signOut',
  'rateLimitAdjust',
  'setMemberRole',
  'removeMember',
  'revokeApiKey',
  'updateTopicSchema',
  'recalculateTopicSchema',
  'cancelQuery',
  'activateVersion',
  'pause',
  'resume',
  'delete',
]);

export function mayRepeat(id: CallableId): boolean {
  return routes[id].startsWith('GET ') || repeatable.has(id);
}

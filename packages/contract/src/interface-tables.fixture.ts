import type { Role } from './operation.ts';

/**
 * The interface as its specification writes it, so that a slip in the contract does not pass. A row is:
 * operation, method, path, query and header parameters (? when optional), body, answers.
 */
export type OperationRow = readonly [
  id: string,
  method: string,
  path: string,
  parameters: string,
  body: string,
  answers: string,
];

const o = '/v1/organization/{organizationName}';
const task = `${o}/control/task/{taskId}`;
const topic = `${o}/topic/{topicName}`;
const query = `${o}/query/{queryExecutionId}`;

/** The 42 operations of the interface specification. */
export const interfaceOperations: readonly OperationRow[] = [
  ['createApiKey', 'PUT', `${o}/auth/apikey`, '', 'ApiKeyCreate', '200 ApiKeyWithSecret'],
  ['listApiKeys', 'POST', `${o}/auth/apikeys`, '', '', '200 ApiKeys'],
  ['revokeApiKey', 'DELETE', `${o}/auth/apikey/{apiKeyId}`, '', '', '200'],
  ['signIn', 'POST', '/v1/auth/sign-in', '', 'SignInRequest', '200 SignInResponse'],
  [
    'signInChallengePasswordChange',
    'POST',
    '/v1/auth/sign-in/password-change',
    '',
    'SignInChallengePasswordChangeRequest',
    '200 SignInResponse',
  ],
  [
    'signInChallengeTotpCode',
    'POST',
    '/v1/auth/sign-in/totp',
    '',
    'SignInChallengeTotpCodeRequest',
    '200 SignInResponse',
  ],
  [
    'signInRefreshToken',
    'POST',
    '/v1/auth/sign-in/refresh',
    '',
    'SignInRefreshTokenRequest',
    '200 SignInResponse',
  ],
  ['signOut', 'POST', '/v1/auth/sign-out', '', 'SignOutRequest', '200'],
  ['signUp', 'PUT', '/v1/auth/sign-up', '', 'SignUpRequest', '200 SignUpResponse'],
  ['signUpConfirmCode', 'PUT', '/v1/auth/sign-up/code', '', 'SignUpConfirmCodeRequest', '200 SignUpResponse'],

  ['uploadCode', 'PUT', `${o}/control/code/upload`, '', 'UploadCodeRequest', '200 UploadCodeResponse'],
  [
    'deployVersion',
    'PATCH',
    `${task}/deploy/{sessionId}`,
    'InvocationType',
    'DeployRequest',
    '200 TaskVersion, 202',
  ],
  ['deployVersionCheck', 'GET', `${task}/deploy/{sessionId}`, '', '', '200 DeployVersionCheckResponse'],
  ['activateVersion', 'PATCH', `${task}/activate`, 'version', '', '200 TaskStatus'],
  ['getVersions', 'GET', `${task}/versions`, '', '', '200 TaskVersions'],
  ['pause', 'PATCH', `${task}/pause`, '', '', '200 TaskStatus'],
  ['resume', 'PATCH', `${task}/resume`, '', '', '200 TaskStatus'],
  ['delete', 'DELETE', `${task}/delete`, '', '', '200 TaskStatus'],
  ['status', 'GET', `${task}/status/`, '', '', '200 TaskStatus'],
  ['statusAll', 'GET', `${o}/control/status`, 'cursor?', '', '200 TaskStatuses'],

  ['getTopics', 'GET', `${o}/topics`, '', '', '200 Topics'],
  [
    'updateDefaultTopic',
    'PATCH',
    `${o}/topic/default`,
    'expectedVersion?',
    'UpdateDefaultTopicRequest',
    '200 Topics',
  ],
  ['updateTopic', 'PATCH', topic, 'expectedVersion?', 'Topic', '200 Topics'],
  ['deleteTopic', 'DELETE', topic, 'expectedVersion?', '', '200 Topics'],
  ['getTopicSchema', 'GET', `${topic}/schema`, '', '', '200 TopicSchema'],
  ['updateTopicSchema', 'PUT', `${topic}/schema`, '', 'UpdateTopicSchemaRequest', '200, 201'],
  ['recalculateTopicSchema', 'POST', `${topic}/schema`, '', '', '200 TopicSchema'],
  ['listTopicFiles', 'GET', `${topic}/files`, 'prefix? maxResults? nextToken?', '', '200 TopicFilesResponse'],
  ['getTopicFileDownloadUrl', 'GET', `${topic}/files/download`, 'key', '', '200 FileDownloadUrlResponse'],

  ['getState', 'POST', `${o}/state/get`, '', 'StateGetRequest', '200 StateEntry'],
  ['listState', 'POST', `${o}/state/list`, '', 'StateListRequest', '200 StateListResponse'],
  ['upsertState', 'POST', `${o}/state/upsert`, '', 'StateUpsertRequest', '200 StateEntry'],
  ['deleteState', 'POST', `${o}/state/delete`, '', 'StateDeleteRequest', '204'],

  ['createOrganization', 'PUT', '/v1/organizations/create', 'organizationName', '', '200'],
  ['inviteToOrganization', 'POST', `${o}/invite`, 'email username?', '', '200'],
  ['rateLimitAdjust', 'PATCH', `${o}/ratelimit`, 'level', '', '200'],
  ['rateLimitGet', 'GET', `${o}/ratelimit`, '', '', '200 RateLimitLevel'],

  ['submitQuery', 'POST', `${o}/query/submit`, '', 'SubmitQueryRequest', '200 SubmitQueryResponse'],
  ['getQueryStatus', 'GET', `${query}/status`, '', '', '200 QueryExecutionStatus'],
  ['getQueryResults', 'GET', `${query}/results`, 'nextToken? maxResults?', '', '200 QueryResultsResponse'],
  ['getQueryHistory', 'GET', `${o}/query/history`, 'maxResults?', '', '200 QueryHistoryResponse'],
  ['getDatabaseSchema', 'GET', `${o}/query/schema`, '', '', '200 DatabaseSchemaResponse'],
];

/** What a service needs beyond them. */
export const addedOperations: readonly OperationRow[] = [
  ['ping', 'GET', '/v1/health', '', '', '200 unnamed'],
  ['message', 'POST', `${topic}/message`, 'messageKey messageId?', 'raw', '200 Published'],
  ['messages', 'POST', `${topic}/messages`, 'messageKeyPath? messageIdPath?', 'raw', '200 PublishedMany'],
  ['tail', 'GET', `${topic}/tail`, 'messageKey?', '', '200 text/event-stream'],
  ['totpEnrol', 'POST', '/v1/auth/totp', '', '', '200 TotpEnrolment'],
  ['totpConfirm', 'POST', '/v1/auth/totp/confirm', '', 'TotpConfirmRequest', '200 TotpConfirmation'],
  ['totpRemove', 'POST', '/v1/auth/totp/remove', '', 'TotpRemoveRequest', '200'],
  ['passwordForgot', 'POST', '/v1/auth/password/forgot', '', 'PasswordForgotRequest', '200'],
  ['passwordReset', 'POST', '/v1/auth/password/reset', '', 'PasswordResetRequest', '200'],
  ['passwordChange', 'POST', '/v1/auth/password/change', '', 'PasswordChangeRequest', '200'],
  ['whoAmI', 'GET', '/v1/auth/me', '', '', '200 WhoAmI'],
  ['listMembers', 'GET', `${o}/members`, '', '', '200 Members'],
  ['setMemberRole', 'PATCH', `${o}/members/{username}`, '', 'SetMemberRoleRequest', '200'],
  ['removeMember', 'DELETE', `${o}/members/{username}`, '', '', '200'],
  ['incrementState', 'POST', `${o}/state/increment`, '', 'StateIncrementRequest', '200 StateEntry'],
  ['taskLogs', 'GET', `${task}/logs`, 'since? cursor? limit?', '', '200 TaskLogs'],
  ['invoke', 'POST', `${task}/invoke`, '', 'InvokeRequest', '200 InvokeResponse'],
  ['taskEndpoint', 'ANY', `${o}/endpoint/{taskId}/*`, '', 'raw', '200 */*'],
  ['listDeadLetters', 'GET', `${task}/dead-letters`, 'cursor? limit?', '', '200 DeadLetters'],
  ['redriveDeadLetters', 'POST', `${task}/dead-letters`, '', 'RedriveRequest', '200 Redriven'],
  ['purgeDeadLetters', 'DELETE', `${task}/dead-letters`, '', '', '200 Purged'],
  ['cancelQuery', 'POST', `${query}/cancel`, '', '', '200 QueryExecutionStatus'],
  [
    'exportQuery',
    'GET',
    `${query}/export`,
    'format',
    '',
    '200 text/csv,application/json,application/vnd.apache.parquet',
  ],
];

const callers: Readonly<Record<Role | 'public' | 'account' | 'deployment', readonly string[]>> = {
  public: [
    'signUp',
    'signUpConfirmCode',
    'signIn',
    'signInChallengeTotpCode',
    'signInChallengePasswordChange',
    'signInRefreshToken',
    'signOut',
    'passwordForgot',
    'passwordReset',
    'ping',
  ],
  account: ['passwordChange', 'totpEnrol', 'totpConfirm', 'totpRemove', 'whoAmI', 'createOrganization'],
  deployment: ['taskEndpoint'],
  VIEWER: [
    'listMembers',
    'rateLimitGet',
    'deployVersionCheck',
    'getVersions',
    'status',
    'statusAll',
    'taskLogs',
    'listDeadLetters',
    'getTopics',
    'getTopicSchema',
    'listTopicFiles',
    'getTopicFileDownloadUrl',
    'tail',
    'getState',
    'listState',
    'submitQuery',
    'getQueryStatus',
    'getQueryResults',
    'getQueryHistory',
    'getDatabaseSchema',
    'cancelQuery',
    'exportQuery',
  ],
  MEMBER: [
    'createApiKey',
    'listApiKeys',
    'revokeApiKey',
    'uploadCode',
    'deployVersion',
    'activateVersion',
    'pause',
    'resume',
    'delete',
    'invoke',
    'redriveDeadLetters',
    'purgeDeadLetters',
    'updateDefaultTopic',
    'updateTopic',
    'deleteTopic',
    'updateTopicSchema',
    'recalculateTopicSchema',
    'message',
    'messages',
    'upsertState',
    'deleteState',
    'incrementState',
  ],
  ADMIN: ['inviteToOrganization', 'setMemberRole', 'removeMember', 'rateLimitAdjust'],
};

/** Who may call each operation: public, an account, the deployment decides, or the lowest role. */
export const roleTable: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(callers).flatMap(([caller, ids]) => ids.map((id) => [id, caller])),
);

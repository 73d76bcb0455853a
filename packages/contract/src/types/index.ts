import type { Limits } from '../limits.ts';
import * as identity from './identity.ts';
import * as organizations from './organizations.ts';
import * as publishing from './publishing.ts';
import * as query from './query.ts';
import * as state from './state.ts';
import * as tasks from './tasks.ts';
import * as topics from './topics.ts';

/** Every named type of the interface, built for the limits in force. */
export function buildTypes(limits: Limits) {
  return {
    SignUpRequest: identity.SignUpRequest,
    SignUpResponse: identity.SignUpResponse,
    SignUpConfirmCodeRequest: identity.SignUpConfirmCodeRequest,
    SignInRequest: identity.SignInRequest,
    SignInResponse: identity.SignInResponse,
    SignInResult: identity.SignInResult,
    SignInChallenge: identity.SignInChallenge,
    CodeRequired: identity.CodeRequired,
    SignInChallengeTotpCodeRequest: identity.SignInChallengeTotpCodeRequest,
    SignInChallengePasswordChangeRequest: identity.SignInChallengePasswordChangeRequest,
    SignInRefreshTokenRequest: identity.SignInRefreshTokenRequest,
    SignOutRequest: identity.SignOutRequest,
    TotpEnrolment: identity.TotpEnrolment,
    TotpConfirmRequest: identity.TotpConfirmRequest,
    TotpConfirmation: identity.TotpConfirmation,
    TotpRemoveRequest: identity.TotpRemoveRequest,
    PasswordForgotRequest: identity.PasswordForgotRequest,
    PasswordResetRequest: identity.PasswordResetRequest,
    PasswordChangeRequest: identity.PasswordChangeRequest,
    WhoAmI: identity.WhoAmI,
    ApiKeyCreate: identity.ApiKeyCreate,
    ApiKey: identity.ApiKey,
    ApiKeyWithSecret: identity.ApiKeyWithSecret,
    ApiKeys: identity.ApiKeys,
    RateLimitLevel: organizations.RateLimitLevel,
    Member: organizations.Member,
    Members: organizations.Members,
    SetMemberRoleRequest: organizations.SetMemberRoleRequest,
    UploadCodeRequest: tasks.uploadCodeRequest(limits),
    UploadCodeResponse: tasks.UploadCodeResponse,
    DeployRequest: tasks.DeployRequest,
    DeployVersionCheckResponse: tasks.DeployVersionCheckResponse,
    TaskVersion: tasks.TaskVersion,
    TaskVersions: tasks.TaskVersions,
    TaskStatus: tasks.TaskStatus,
    TaskStatuses: tasks.TaskStatuses,
    LogLine: tasks.LogLine,
    TaskLogs: tasks.TaskLogs,
    InvokeRequest: tasks.InvokeRequest,
    InvokeResponse: tasks.InvokeResponse,
    DeadLetter: tasks.DeadLetter,
    DeadLetters: tasks.DeadLetters,
    RedriveRequest: tasks.RedriveRequest,
    Redriven: tasks.Redriven,
    Purged: tasks.Purged,
    StoreKey: topics.StoreKey,
    Topic: topics.Topic,
    Topics: topics.Topics,
    UpdateDefaultTopicRequest: topics.UpdateDefaultTopicRequest,
    TopicSchema: topics.TopicSchema,
    UpdateTopicSchemaRequest: topics.updateTopicSchemaRequest(limits),
    TopicFilesResponse: topics.TopicFilesResponse,
    FileDownloadUrlResponse: topics.FileDownloadUrlResponse,
    Published: publishing.Published,
    PublishedMany: publishing.PublishedMany,
    StateGetRequest: state.stateKeyRequest(limits),
    StateDeleteRequest: state.stateKeyRequest(limits),
    StateListRequest: state.stateListRequest(limits),
    StateUpsertRequest: state.stateUpsertRequest(limits),
    StateIncrementRequest: state.stateIncrementRequest(limits),
    StateEntry: state.StateEntry,
    StateListResponse: state.StateListResponse,
    SubmitQueryRequest: query.submitQueryRequest(limits),
    SubmitQueryResponse: query.SubmitQueryResponse,
    QueryExecutionStatus: query.QueryExecutionStatus,
    QueryResultsResponse: query.QueryResultsResponse,
    QueryHistoryResponse: query.QueryHistoryResponse,
    DatabaseSchemaResponse: query.DatabaseSchemaResponse,
  } as const;
}

export type Types = ReturnType<typeof buildTypes>;

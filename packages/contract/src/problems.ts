/** What a problem code means: its HTTP status, a short title, and what a person should know and do. */
export interface ProblemDefinition {
  readonly status: number;
  readonly title: string;
  readonly explanation: string;
}

/**
 * The catalogue of problems. A code is stable: programs may branch on it. Each has a page on the server
 * at the path that `type` of the problem names.
 */
export const problems = {
  VALIDATION_FAILED: {
    status: 400,
    title: 'The request is not valid',
    explanation:
      'A part of the request is missing, unknown, of the wrong type or outside its limits. The list `errors` names each place with a JSON pointer and says what was expected there.',
  },
  MALFORMED_JSON: {
    status: 400,
    title: 'The body is not JSON',
    explanation:
      'The body could not be read as one JSON document in UTF-8. Check quotes, commas and encoding.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    title: 'The request is malformed',
    explanation: 'The request could not be read as HTTP, or its URL is not correctly encoded.',
  },
  BODY_NOT_EXPECTED: {
    status: 400,
    title: 'This operation takes no body',
    explanation: 'Send the request without a body.',
  },
  TOKEN_INVALID: {
    status: 400,
    title: 'The paging token is not valid',
    explanation:
      'A nextToken, cursor or nextCursor must be passed back unchanged, to the operation and organization that gave it. Start again without one.',
  },
  BATCH_REQUIRED: {
    status: 400,
    title: 'The topic has no batch files',
    explanation: 'Files exist only for topics with batch enabled. Enable it with updateTopic.',
  },
  BODY_NOT_OBJECT: {
    status: 400,
    title: 'The message is not a JSON object',
    explanation: 'A topic with batch or store takes messages that are JSON objects.',
  },
  SQL_INVALID: {
    status: 400,
    title: 'The query is not valid',
    explanation: 'The text must be exactly one read-only SQL statement.',
  },
  QUERY_NOT_SUCCEEDED: {
    status: 400,
    title: 'The query has no results',
    explanation: 'Results can be read once the state of the query is SUCCEEDED.',
  },
  LENGTH_MISMATCH: {
    status: 400,
    title: 'The body has the wrong length',
    explanation: 'An upload must send exactly as many bytes as were announced when its URL was made.',
  },
  CREDENTIAL_MISSING: {
    status: 401,
    title: 'No credential',
    explanation:
      'The request has no credential, and this operation needs one. Send `Authorization: Bearer <token>` with an access token or an API key.',
  },
  CREDENTIAL_INVALID: {
    status: 401,
    title: 'The credential is not accepted',
    explanation:
      'The access token or API key is malformed, expired, revoked or signed out. Refresh the session, sign in again, or use another key.',
  },
  PASSWORD_WRONG: {
    status: 403,
    title: 'The password or code is wrong',
    explanation: 'The current password, or the one-time code, does not match the account.',
  },
  ROLE_TOO_LOW: {
    status: 403,
    title: 'Your role does not allow this',
    explanation: 'Ask an administrator of the organization for a higher role.',
  },
  KEY_RESTRICTED: {
    status: 403,
    title: 'The API key does not allow this',
    explanation:
      'A key with a queueWhitelist may only publish to the topics on its list, and the key of a task may only publish to its outputs and use state.',
  },
  SESSION_REQUIRED: {
    status: 403,
    title: 'An API key cannot do this',
    explanation: 'This belongs to a person rather than an organization. Sign in and use the access token.',
  },
  SIGNATURE_INVALID: {
    status: 403,
    title: 'The signed URL is not accepted',
    explanation:
      'The URL was altered, is used with another method or length, or has expired. Ask for a new one.',
  },
  NOT_FOUND: {
    status: 404,
    title: 'There is nothing at this path',
    explanation: 'No operation has this path. The documentation at /docs lists them all.',
  },
  ORGANIZATION_NOT_FOUND: {
    status: 404,
    title: 'No such organization',
    explanation: 'The organization does not exist, or you are not a member of it.',
  },
  MEMBER_NOT_FOUND: {
    status: 404,
    title: 'No such member',
    explanation: 'The organization has no member with this username.',
  },
  ACCOUNT_NOT_FOUND: {
    status: 404,
    title: 'No account with this email',
    explanation: 'Nobody has signed up with this email. Give a username as well, and an account is made.',
  },
  API_KEY_NOT_FOUND: {
    status: 404,
    title: 'No such API key',
    explanation: 'The organization has no API key with this id.',
  },
  TOPIC_NOT_FOUND: {
    status: 404,
    title: 'No such topic',
    explanation: 'The topic is not defined, and the organization does not allow undefined topics.',
  },
  SCHEMA_NOT_FOUND: {
    status: 404,
    title: 'The topic has no schema',
    explanation:
      'The topic has no schema yet. Upload one with updateTopicSchema or infer one with recalculateTopicSchema.',
  },
  FILE_NOT_FOUND: {
    status: 404,
    title: 'No such file',
    explanation: 'The topic has no file with this key.',
  },
  OBJECT_NOT_FOUND: {
    status: 404,
    title: 'No such object',
    explanation: 'The object of this signed URL does not exist, or no longer.',
  },
  TASK_NOT_FOUND: {
    status: 404,
    title: 'No such task',
    explanation: 'The organization has no task with this id.',
  },
  VERSION_NOT_FOUND: {
    status: 404,
    title: 'No such task version',
    explanation: 'The task has no version of this name.',
  },
  STATE_NOT_FOUND: {
    status: 404,
    title: 'No such state entry',
    explanation: 'There is no entry with these key parts, or it has expired.',
  },
  QUERY_NOT_FOUND: {
    status: 404,
    title: 'No such query',
    explanation: 'The organization has no query with this id, or it is older than seven days.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    title: 'The path exists, the method does not',
    explanation: 'The header `Allow` lists the methods of this path.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    title: 'The request took too long to arrive',
    explanation: 'Send the whole request without long pauses.',
  },
  NAME_TAKEN: {
    status: 409,
    title: 'The name is taken',
    explanation: 'Names are unique without regard to case. Choose another.',
  },
  TOTP_ALREADY_ENABLED: {
    status: 409,
    title: 'One-time codes are already enabled',
    explanation: 'Remove the present device with totpRemove before enrolling another.',
  },
  TOTP_NOT_ENROLLED: {
    status: 409,
    title: 'No one-time-code device is enrolled',
    explanation: 'Call totpEnrol first, then confirm it with a code of the device.',
  },
  LAST_ADMIN: {
    status: 409,
    title: 'An organization keeps at least one administrator',
    explanation: 'Make another member ADMIN first.',
  },
  KEY_NOT_REVOCABLE: {
    status: 409,
    title: 'This key cannot be revoked by hand',
    explanation: "A task's own key is retired with its version.",
  },
  LIMIT_REACHED: {
    status: 409,
    title: 'There are as many as there may be',
    explanation: 'The detail names the limit. Delete what is no longer needed first.',
  },
  VERSION_MISMATCH: {
    status: 409,
    title: 'The version has changed meanwhile',
    explanation: 'Read the present version, apply your change to it, and try again.',
  },
  TASK_CYCLE: {
    status: 409,
    title: 'The task would feed itself',
    explanation: "A task's outputs may not lead back to its inputs. The detail names the path.",
  },
  SESSION_USED: {
    status: 409,
    title: 'The deployment session is used',
    explanation: 'Each upload can be deployed once. Upload the code again.',
  },
  ALREADY_UPLOADED: {
    status: 409,
    title: 'The object was uploaded already',
    explanation: 'A signed upload URL is good for one upload.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    title: 'The body is too large',
    explanation: 'The detail names the limit.',
  },
  URI_TOO_LONG: {
    status: 414,
    title: 'The URL is too long',
    explanation: 'A part of the path is longer than any name here may be.',
  },
  MEDIA_TYPE_NOT_SUPPORTED: {
    status: 415,
    title: 'The media type is not supported here',
    explanation: 'The detail names the media types that are.',
  },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    title: 'The range is outside the object',
    explanation: 'The header `Content-Range` says how long the object is.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    title: 'The expectation cannot be met',
    explanation: 'The only value of the header `Expect` that is understood is 100-continue.',
  },
  CODE_INVALID: {
    status: 422,
    title: 'The code cannot be deployed',
    explanation:
      'The upload is not a zip, is not safe to unpack, or lacks the handler. The detail says which.',
  },
  RUNTIME_MISSING: {
    status: 422,
    title: 'The runtime is not available',
    explanation: 'The host has no such runtime. The detail names what is missing.',
  },
  SCHEMA_INVALID: {
    status: 422,
    title: 'The schema is not a JSON Schema',
    explanation: 'Give a JSON Schema document for an object.',
  },
  PASSWORD_WEAK: {
    status: 422,
    title: 'The password is too weak',
    explanation: 'Use at least eight characters that are not a commonly used password.',
  },
  CODE_WRONG: {
    status: 422,
    title: 'The code is wrong or has expired',
    explanation: 'Check the code, or ask for a new one.',
  },
  RATE_LIMITED: {
    status: 429,
    title: 'The organization is at its rate limit',
    explanation:
      'Wait as long as `Retry-After` says. An administrator can change the level with rateLimitAdjust.',
  },
  TOO_MANY_ATTEMPTS: {
    status: 429,
    title: 'Too many attempts',
    explanation: 'Wait as long as `Retry-After` says before trying again.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    title: 'The headers are too large',
    explanation: 'The request line and headers together exceed what the server takes.',
  },
  INTERNAL: {
    status: 500,
    title: 'Something went wrong on our side',
    explanation: 'The fault is logged under the request id. Trying again may help.',
  },
  TASK_FAILED: {
    status: 502,
    title: 'The task failed',
    explanation: "The task's handler threw, crashed or gave a malformed answer. Its logs say more.",
  },
  OVERLOADED: {
    status: 503,
    title: 'The server is busy',
    explanation: 'Nothing was accepted. Try again after `Retry-After`.',
  },
  STORAGE_FULL: {
    status: 503,
    title: 'The server cannot store anything now',
    explanation:
      'Its disk is full or an engine is down. Nothing was accepted. Try again after `Retry-After`.',
  },
  SHUTTING_DOWN: {
    status: 503,
    title: 'The server is shutting down',
    explanation: 'Nothing was accepted. Try again after `Retry-After`.',
  },
  TASK_TIMED_OUT: {
    status: 504,
    title: 'The task ran out of time',
    explanation: 'The handler did not answer within its timeoutSec.',
  },
} as const satisfies Record<string, ProblemDefinition>;

export type ProblemCode = keyof typeof problems;

/** The path on the server that explains a problem code, used as `type` of a problem. */
export function problemType(code: ProblemCode): string {
  return `/docs/errors/${code.toLowerCase().replaceAll('_', '-')}`;
}

import type { Access, OperationDefinition } from './operation.ts';
import { type ProblemCode, problems } from './problems.ts';

/** The codes in the order of the catalogue, which is by status. */
export const problemCodes: readonly ProblemCode[] = Object.keys(problems).filter(isProblemCode);

export function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code);
}

function problemsOfAccess(access: Access): readonly ProblemCode[] {
  switch (access.kind) {
    case 'public':
      return [];
    case 'account':
      return [
        'CREDENTIAL_MISSING',
        'CREDENTIAL_INVALID',
        access.apiKey ? 'KEY_RESTRICTED' : 'SESSION_REQUIRED',
      ];
    case 'organization':
      return [
        'CREDENTIAL_MISSING',
        'CREDENTIAL_INVALID',
        'KEY_RESTRICTED',
        'ORGANIZATION_NOT_FOUND',
        'RATE_LIMITED',
        // Every member is a VIEWER at least, so only a higher demand can be missed.
        ...(access.role === 'VIEWER' ? [] : (['ROLE_TOO_LOW'] as const)),
      ];
    case 'deployment':
      return [
        'CREDENTIAL_MISSING',
        'CREDENTIAL_INVALID',
        'KEY_RESTRICTED',
        'ORGANIZATION_NOT_FOUND',
        'RATE_LIMITED',
      ];
  }
}

function problemsOfBody(operation: OperationDefinition): readonly ProblemCode[] {
  const { body } = operation;
  if (body === undefined) return operation.method === 'GET' ? [] : ['BODY_NOT_EXPECTED'];
  if ('schema' in body) return ['MALFORMED_JSON', 'BODY_TOO_LARGE', 'MEDIA_TYPE_NOT_SUPPORTED'];
  if (body.mediaTypes.includes('any')) return ['BODY_TOO_LARGE'];
  return [
    'BODY_TOO_LARGE',
    'MEDIA_TYPE_NOT_SUPPORTED',
    ...(body.mediaTypes.includes('application/json') ? (['MALFORMED_JSON'] as const) : []),
  ];
}

/**
 * Every problem that an operation may answer, by status: those that its access and its body imply, those it
 * names itself, and those that any operation may give.
 */
export function applicableProblems(operation: OperationDefinition): readonly ProblemCode[] {
  const applicable = new Set<ProblemCode>([
    'VALIDATION_FAILED',
    'INTERNAL',
    'OVERLOADED',
    'SHUTTING_DOWN',
    ...problemsOfAccess(operation.access),
    ...problemsOfBody(operation),
    ...(operation.problems ?? []),
  ]);
  return problemCodes.filter((code) => applicable.has(code));
}

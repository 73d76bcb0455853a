import { type Access, roleIncludes } from '@millrace/contract';

type OrganizationAccess = Extract<Access, { readonly kind: 'organization' }>;

/** Whether an API key of any owner can have the role that the operation asks for. */
function acceptsApiKeys(access: OrganizationAccess): boolean {
  return access.apiKeyRole === undefined || roleIncludes(access.apiKeyRole, access.role);
}

function organizationSentences(access: OrganizationAccess): readonly string[] {
  const members =
    access.role === 'VIEWER'
      ? 'Every member of the organization'
      : access.role === 'ADMIN'
        ? 'An ADMIN of the organization'
        : `A member of the organization with the role ${access.role} or higher`;
  if (!acceptsApiKeys(access)) return [`${members}, with an access token.`, 'API keys are not accepted.'];
  return [
    `${members}, with an access token or an API key.`,
    ...(access.apiKeyRole === undefined ? [] : [`An API key counts as at most ${access.apiKeyRole} here.`]),
    access.restrictedKey === true
      ? 'A key with a `queueWhitelist` may call it for the topics on its list.'
      : 'A key with a `queueWhitelist` may not.',
    ...(access.taskKey === 'outputs'
      ? ["A task's own key may call it for the topics the task outputs to."]
      : []),
    ...(access.taskKey === 'state' ? ["A task's own key may call it as well."] : []),
  ];
}

/** Who may call an operation, in words. */
export function accessInWords(access: Access): string {
  switch (access.kind) {
    case 'public':
      return 'Anybody. No credential is needed.';
    case 'account':
      return access.apiKey
        ? 'Everybody with an account, with an access token or an API key without a `queueWhitelist`.'
        : 'Everybody with an account, with an access token. API keys are not accepted.';
    case 'organization':
      return organizationSentences(access).join(' ');
    case 'deployment':
      return 'Anybody when the task was deployed with a public endpoint; otherwise members of the organization, with an access token or an API key.';
  }
}

/** The shell variable that holds a fitting credential in the examples; none when none is needed. */
export function credentialVariable(access: Access): string | undefined {
  switch (access.kind) {
    case 'public':
    case 'deployment':
      return undefined;
    case 'account':
      return 'ACCESS_TOKEN';
    case 'organization':
      return acceptsApiKeys(access) ? 'MILLRACE_API_KEY' : 'ACCESS_TOKEN';
  }
}

import Type from 'typebox';
import { Email, Identifier, inOrganization, OrganizationName, strict, Username } from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { organization } from './examples.ts';

const viewer = { kind: 'organization', role: 'VIEWER' } as const;
const admin = { kind: 'organization', role: 'ADMIN' } as const;
/** Membership changes and key management are for people: a key never does them above the role of MEMBER. */
const adminInPerson = { kind: 'organization', role: 'ADMIN', apiKeyRole: 'MEMBER' } as const;
const keyHolder = { kind: 'organization', role: 'MEMBER', apiKeyRole: 'MEMBER' } as const;

const inMember = strict({ organizationName: OrganizationName, username: Username });

const apiKey = {
  id: 'p2Kx9LmQ7vRt4WbYc8Zn3J',
  organizationName: 'acme',
  description: 'web site',
  ownerType: 'USER',
  ownerUsername: 'ada',
  revocable: true,
  queueWhitelist: ['clicks'],
  createdAt: '2026-11-15T09:30:00.000Z',
} as const;

export function organizationOperations(types: Types) {
  return defineOperations({
    createOrganization: {
      method: 'PUT',
      path: '/v1/organizations/create',
      group: 'Organizations',
      summary: 'Make an organization',
      description: 'You become its first ADMIN.',
      access: { kind: 'account', apiKey: false },
      parameters: { query: strict({ organizationName: OrganizationName }) },
      responses: { 200: { description: 'Made.' } },
      problems: ['NAME_TAKEN'],
      example: { query: organization },
    },
    inviteToOrganization: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/invite',
      group: 'Organizations',
      summary: 'Add a person to the organization',
      description:
        'An existing account is added at once as MEMBER and told by mail. For a new person give a username: an account is made, its temporary password is mailed, and the first sign-in asks for a new one.',
      access: adminInPerson,
      parameters: {
        path: inOrganization,
        query: strict({ email: Email, username: Type.Optional(Username) }),
      },
      responses: { 200: { description: 'Added.' } },
      problems: ['ACCOUNT_NOT_FOUND', 'NAME_TAKEN', 'TOO_MANY_ATTEMPTS'],
      example: { path: organization, query: { email: 'grace@example.com', username: 'grace' } },
    },
    listMembers: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/members',
      group: 'Organizations',
      summary: 'List the members',
      access: viewer,
      parameters: { path: inOrganization },
      responses: { 200: { description: 'The members by username.', schema: types.Members } },
      example: {
        path: organization,
        response: {
          members: [
            {
              username: 'ada',
              email: 'ada@example.com',
              role: 'ADMIN',
              joinedAt: '2026-11-15T09:30:00.000Z',
            },
          ],
        },
      },
    },
    setMemberRole: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/members/{username}',
      group: 'Organizations',
      summary: "Change a member's role",
      access: adminInPerson,
      parameters: { path: inMember },
      body: { schema: types.SetMemberRoleRequest },
      responses: { 200: { description: 'Changed.' } },
      problems: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'],
      example: { path: { ...organization, username: 'grace' }, body: { role: 'VIEWER' } },
    },
    removeMember: {
      method: 'DELETE',
      path: '/v1/organization/{organizationName}/members/{username}',
      group: 'Organizations',
      summary: 'Remove a member',
      description: 'Takes effect at once, and revokes the API keys that the member made here.',
      access: adminInPerson,
      parameters: { path: inMember },
      responses: { 200: { description: 'Removed.' } },
      problems: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'],
      example: { path: { ...organization, username: 'grace' } },
    },
    rateLimitGet: {
      method: 'GET',
      path: '/v1/organization/{organizationName}/ratelimit',
      group: 'Organizations',
      summary: 'Read the rate-limit level',
      access: viewer,
      parameters: { path: inOrganization },
      responses: { 200: { description: 'The level, as a JSON string.', schema: types.RateLimitLevel } },
      example: { path: organization, response: 'DEFAULT' },
    },
    rateLimitAdjust: {
      method: 'PATCH',
      path: '/v1/organization/{organizationName}/ratelimit',
      group: 'Organizations',
      summary: 'Set the rate-limit level',
      access: admin,
      parameters: { path: inOrganization, query: strict({ level: types.RateLimitLevel }) },
      responses: { 200: { description: 'Set.' } },
      example: { path: organization, query: { level: 'HUNDRED' } },
    },
    createApiKey: {
      method: 'PUT',
      path: '/v1/organization/{organizationName}/auth/apikey',
      group: 'API keys',
      summary: 'Make an API key',
      description: 'The key acts with your role in this one organization. Its secret is shown this once.',
      access: keyHolder,
      parameters: { path: inOrganization },
      body: { schema: types.ApiKeyCreate },
      responses: { 200: { description: 'The key with its secret.', schema: types.ApiKeyWithSecret } },
      problems: ['LIMIT_REACHED'],
      example: {
        path: organization,
        body: { description: 'web site', queueWhitelist: ['clicks'] },
        response: { ...apiKey, secret: 'mr_4fQz8LmXw2RtYb7Zc1KpJv9sNd3HgT0aB5eC' },
      },
    },
    listApiKeys: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/auth/apikeys',
      group: 'API keys',
      summary: 'List API keys',
      description: 'An ADMIN sees every key of the organization, others their own.',
      access: { kind: 'organization', role: 'MEMBER' },
      parameters: { path: inOrganization },
      responses: { 200: { description: 'The keys, newest first.', schema: types.ApiKeys } },
      example: { path: organization, response: { keys: [apiKey] } },
    },
    revokeApiKey: {
      method: 'DELETE',
      path: '/v1/organization/{organizationName}/auth/apikey/{apiKeyId}',
      group: 'API keys',
      summary: 'Revoke an API key',
      description: 'An ADMIN may revoke every key, others their own. Effective within a second everywhere.',
      access: keyHolder,
      parameters: { path: strict({ organizationName: OrganizationName, apiKeyId: Identifier }) },
      responses: { 200: { description: 'Revoked.' } },
      problems: ['API_KEY_NOT_FOUND', 'KEY_NOT_REVOCABLE'],
      example: { path: { ...organization, apiKeyId: apiKey.id } },
    },
  });
}

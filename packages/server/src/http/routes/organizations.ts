import type { IdentityParts } from '../../identity/identity.ts';
import { invite } from '../../organizations/invitations.ts';
import type { Organizations } from '../../organizations/organizations.ts';
import { timestamp } from '../../platform/clock.ts';
import { accountOf, answer, done, type HandlersOf } from '../handlers.ts';

export function organizationHandlers(
  identity: IdentityParts,
  organizations: Organizations,
): HandlersOf<
  | 'createOrganization'
  | 'inviteToOrganization'
  | 'listMembers'
  | 'setMemberRole'
  | 'removeMember'
  | 'rateLimitGet'
  | 'rateLimitAdjust'
> {
  return {
    createOrganization: async ({ query, caller }) =>
      (await organizations.create(query.organizationName, caller.accountId)) ?? done,
    inviteToOrganization: async ({ query, organization }) =>
      (await invite(identity, organizations, organization, query)) ?? done,
    listMembers: async ({ organization }) => {
      const members = await organizations.members(organization.id);
      return answer({
        members: members.map(({ username, email, role, joinedAt }) => ({
          username,
          email,
          role,
          joinedAt: timestamp(joinedAt),
        })),
      });
    },
    setMemberRole: async ({ path, body, caller, organization }) =>
      (await organizations.setMemberRole(organization.id, accountOf(caller), path.username, body.role)) ??
      done,
    removeMember: async ({ path, caller, organization }) =>
      (await organizations.removeMember(organization.id, accountOf(caller), path.username)) ?? done,
    rateLimitGet: async ({ organization }) => answer(organization.rateLimitLevel),
    rateLimitAdjust: async ({ query, organization }) => {
      await organizations.adjustRateLimit(organization, query.level);
      return done;
    },
  };
}

import type { ApiKeyRecord } from '../../identity/api-key-store.ts';
import type { ApiKeys } from '../../identity/api-keys.ts';
import type { Organization } from '../../organizations/organization-store.ts';
import type { Organizations } from '../../organizations/organizations.ts';
import { type Clock, timestamp } from '../../platform/clock.ts';
import { Problem, problem } from '../../platform/problem.ts';
import { accountOf, answer, done, type HandlersOf } from '../handlers.ts';

export function apiKeyHandlers(
  keys: ApiKeys,
  organizations: Organizations,
  clock: Clock,
): HandlersOf<'createApiKey' | 'listApiKeys' | 'revokeApiKey'> {
  return {
    createApiKey: async ({ body, caller, organization }) => {
      if (body.expiresAt !== undefined && body.expiresAt <= clock.now()) {
        const errors = [{ pointer: '/expiresAt', message: 'must be in the future, in epoch milliseconds' }];
        return problem('VALIDATION_FAILED', 'expiresAt must be in the future, in epoch milliseconds.', {
          errors,
        });
      }
      const accountId = accountOf(caller);
      const created = await keys.create(
        {
          organizationId: organization.id,
          description: body.description,
          ownerType: 'USER',
          ownerAccountId: accountId,
          ownerUsername: caller.kind === 'key' ? caller.key.ownerUsername : caller.username,
          revocable: true,
          queueWhitelist: body.queueWhitelist,
          expiresAt: body.expiresAt,
        },
        (queries) => organizations.requireRole(queries, organization.id, accountId, 'MEMBER'),
      );
      if (created instanceof Problem) return created;
      return answer({ ...describe(created.key, organization), secret: created.secret });
    },
    listApiKeys: async ({ caller, organization, role }) => {
      const found = await keys.list(organization.id, role === 'ADMIN' ? undefined : accountOf(caller));
      return answer({ keys: found.map((key) => describe(key, organization)) });
    },
    revokeApiKey: async ({ path, caller, organization, role }) => {
      const key = await keys.find(organization.id, path.apiKeyId);
      if (key === undefined) return problem('API_KEY_NOT_FOUND');
      if (role !== 'ADMIN' && key.ownerAccountId !== accountOf(caller)) {
        return problem('ROLE_TOO_LOW', "Another person's key can be revoked by an ADMIN only.");
      }
      if (!key.revocable) return problem('KEY_NOT_REVOCABLE');
      await keys.revoke(key);
      return done;
    },
  };
}

function describe(key: ApiKeyRecord, organization: Organization) {
  return {
    id: key.id,
    organizationName: organization.name,
    description: key.description,
    ownerType: key.ownerType,
    ownerUsername: key.ownerUsername,
    revocable: key.revocable,
    ...(key.queueWhitelist === undefined ? {} : { queueWhitelist: [...key.queueWhitelist] }),
    ...(key.expiresAt === undefined ? {} : { expiresAt: key.expiresAt }),
    createdAt: timestamp(key.createdAt),
    ...(key.lastUsedAt === undefined ? {} : { lastUsedAt: timestamp(key.lastUsedAt) }),
  };
}

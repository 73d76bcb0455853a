import Type from 'typebox';
import { oneOf, strict, Timestamp, Username } from '../names.ts';
import { RoleName } from './identity.ts';

export const rateLimitLevels = ['DEFAULT', 'ONE', 'TEN', 'HUNDRED'] as const;
export type RateLimitLevelName = (typeof rateLimitLevels)[number];

export const RateLimitLevel = oneOf(
  rateLimitLevels,
  'Sustained requests a second for the whole organization, with a burst of ten seconds: 1, 10, 100, or the default of the server.',
);

export const Member = strict({
  username: Username,
  email: Type.String(),
  role: RoleName,
  joinedAt: Timestamp,
});
export const Members = strict({ members: Type.Array(Member) });
export const SetMemberRoleRequest = strict({ role: RoleName });

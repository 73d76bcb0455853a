import {
  changePassword,
  confirmTotp,
  enrolTotp,
  forgetPassword,
  removeTotp,
  resetPassword,
} from '../../identity/account-security.ts';
import type { IdentityParts } from '../../identity/identity.ts';
import { answerPasswordChallenge, answerTotpChallenge, signIn } from '../../identity/sign-in.ts';
import { confirmSignUp, signUp } from '../../identity/sign-up.ts';
import type { Organizations } from '../../organizations/organizations.ts';
import { Problem, problem } from '../../platform/problem.ts';
import { accountOf, answer, done, type HandlersOf } from '../handlers.ts';

export function authenticationHandlers(
  identity: IdentityParts,
  organizations: Organizations,
): HandlersOf<
  | 'signUp'
  | 'signUpConfirmCode'
  | 'signIn'
  | 'signInChallengeTotpCode'
  | 'signInChallengePasswordChange'
  | 'signInRefreshToken'
  | 'signOut'
  | 'passwordForgot'
  | 'passwordReset'
  | 'passwordChange'
  | 'totpEnrol'
  | 'totpConfirm'
  | 'totpRemove'
  | 'whoAmI'
> {
  return {
    signUp: async ({ body, visitor }) => orProblem(await signUp(identity, body, visitor)),
    signUpConfirmCode: async ({ body, visitor }) => orProblem(await confirmSignUp(identity, body, visitor)),
    signIn: async ({ body, visitor }) => orProblem(await signIn(identity, body, visitor)),
    signInChallengeTotpCode: async ({ body, visitor }) =>
      orProblem(await answerTotpChallenge(identity, body, visitor)),
    signInChallengePasswordChange: async ({ body, visitor }) =>
      orProblem(await answerPasswordChallenge(identity, body, visitor)),
    signInRefreshToken: async ({ body }) => {
      const result = await identity.sessions.refresh(body.refreshToken);
      return answer(
        result === undefined ? { errorMsg: 'The session has ended. Sign in again.' } : { result },
      );
    },
    signOut: async ({ body }) => {
      await identity.sessions.end(body.refreshToken);
      return done;
    },
    passwordForgot: async ({ body, visitor }) =>
      (await forgetPassword(identity, body.usernameOrEmail, visitor)) ?? done,
    passwordReset: async ({ body, visitor }) => (await resetPassword(identity, body, visitor)) ?? done,
    passwordChange: async ({ body, caller, visitor }) =>
      (await changePassword(identity, caller, body, visitor)) ?? done,
    totpEnrol: async ({ caller }) => orProblem(await enrolTotp(identity, caller.accountId)),
    totpConfirm: async ({ body, caller, visitor }) =>
      orProblem(await confirmTotp(identity, caller.accountId, body.code, visitor)),
    totpRemove: async ({ body, caller, visitor }) =>
      (await removeTotp(identity, caller.accountId, body, visitor)) ?? done,
    whoAmI: async ({ caller }) => {
      const accountId = accountOf(caller);
      const profile = accountId === undefined ? undefined : await identity.profiles.get(accountId);
      if (profile === undefined) return problem('CREDENTIAL_INVALID');
      const memberships = await organizations.memberships(profile.accountId);
      const visible = memberships.filter(
        (membership) => caller.kind === 'session' || membership.organizationId === caller.key.organizationId,
      );
      return answer({
        username: profile.username,
        email: profile.email,
        totpEnabled: profile.totpEnabled,
        organizations: visible.map(({ organizationName, role }) => ({ organizationName, role })),
      });
    },
  };
}

function orProblem<Body extends object>(outcome: Body | Problem) {
  return outcome instanceof Problem ? outcome : answer(outcome);
}

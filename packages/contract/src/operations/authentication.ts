import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { signInResult } from './examples.ts';

const anybody = { kind: 'public' } as const;
const person = { kind: 'account', apiKey: false } as const;
const mailedCode = '482913';

export function authenticationOperations(types: Types) {
  return defineOperations({
    signUp: {
      method: 'PUT',
      path: '/v1/auth/sign-up',
      group: 'Authentication',
      summary: 'Make an account',
      description:
        'A six-digit code is mailed and must be given to signUpConfirmCode. What a person can mend, such as a taken username or a weak password, is answered with 200 and errorMsg.',
      access: anybody,
      body: { schema: types.SignUpRequest },
      responses: { 200: { description: 'What comes next.', schema: types.SignUpResponse } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: {
        body: {
          username: 'ada',
          email: 'ada@example.com',
          password: 'correct horse battery staple',
          tosAgreed: true,
          marketingAgreed: false,
        },
        response: { codeRequired: { username: 'ada' } },
      },
    },
    signUpConfirmCode: {
      method: 'PUT',
      path: '/v1/auth/sign-up/code',
      group: 'Authentication',
      summary: 'Confirm an account with the mailed code',
      description: 'A code lives 15 minutes and allows five tries; then a new one is mailed.',
      access: anybody,
      body: { schema: types.SignUpConfirmCodeRequest },
      responses: { 200: { description: 'Confirmed, or what went wrong.', schema: types.SignUpResponse } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: { body: { username: 'ada', code: mailedCode }, response: { confirmed: true } },
    },
    signIn: {
      method: 'POST',
      path: '/v1/auth/sign-in',
      group: 'Authentication',
      summary: 'Sign in with a password',
      description: 'Answers tokens, or a challenge to go on with, or errorMsg.',
      access: anybody,
      body: { schema: types.SignInRequest },
      responses: { 200: { description: 'Tokens, a challenge or a message.', schema: types.SignInResponse } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: {
        body: { usernameOrEmail: 'ada', password: 'correct horse battery staple' },
        response: signInResult,
      },
    },
    signInChallengeTotpCode: {
      method: 'POST',
      path: '/v1/auth/sign-in/totp',
      group: 'Authentication',
      summary: 'Answer the one-time-code challenge',
      description: 'A recovery code may stand in for the code, once. Five wrong codes end the challenge.',
      access: anybody,
      body: { schema: types.SignInChallengeTotpCodeRequest },
      responses: { 200: { description: 'Tokens, a challenge or a message.', schema: types.SignInResponse } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: {
        body: { username: 'ada', session: 'k3JvN8sQw2LmXz7RtYb1Pc', code: '204117' },
        response: signInResult,
      },
    },
    signInChallengePasswordChange: {
      method: 'POST',
      path: '/v1/auth/sign-in/password-change',
      group: 'Authentication',
      summary: 'Answer the challenge to choose a new password',
      access: anybody,
      body: { schema: types.SignInChallengePasswordChangeRequest },
      responses: { 200: { description: 'Tokens, a challenge or a message.', schema: types.SignInResponse } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: {
        body: { username: 'ada', session: 'k3JvN8sQw2LmXz7RtYb1Pc', newPassword: 'nine green bottles hang' },
        response: signInResult,
      },
    },
    signInRefreshToken: {
      method: 'POST',
      path: '/v1/auth/sign-in/refresh',
      group: 'Authentication',
      summary: 'Exchange a refresh token for a new result',
      description:
        'The refresh token is rotated. A rotated token that is presented again ends the session, except within ten seconds of its rotation, when it answers the same successor.',
      access: anybody,
      body: { schema: types.SignInRefreshTokenRequest },
      responses: { 200: { description: 'Tokens or a message.', schema: types.SignInResponse } },
      example: { body: { refreshToken: signInResult.result.refreshToken }, response: signInResult },
    },
    signOut: {
      method: 'POST',
      path: '/v1/auth/sign-out',
      group: 'Authentication',
      summary: 'End a session',
      description: 'Its access tokens stop working at once. The answer is the same for an unknown token.',
      access: anybody,
      body: { schema: types.SignOutRequest },
      responses: { 200: { description: 'The session is over.' } },
      example: { body: { refreshToken: signInResult.result.refreshToken } },
    },
    passwordForgot: {
      method: 'POST',
      path: '/v1/auth/password/forgot',
      group: 'Authentication',
      summary: 'Have a code mailed to reset a password',
      description: 'Answers the same whether or not the account exists.',
      access: anybody,
      body: { schema: types.PasswordForgotRequest },
      responses: { 200: { description: 'If there is such an account, a code is on its way.' } },
      problems: ['TOO_MANY_ATTEMPTS'],
      example: { body: { usernameOrEmail: 'ada@example.com' } },
    },
    passwordReset: {
      method: 'POST',
      path: '/v1/auth/password/reset',
      group: 'Authentication',
      summary: 'Set a new password with the mailed code',
      description: 'Ends every session of the account.',
      access: anybody,
      body: { schema: types.PasswordResetRequest },
      responses: { 200: { description: 'The password is set.' } },
      problems: ['CODE_WRONG', 'PASSWORD_WEAK', 'TOO_MANY_ATTEMPTS'],
      example: {
        body: {
          usernameOrEmail: 'ada@example.com',
          code: mailedCode,
          newPassword: 'nine green bottles hang',
        },
      },
    },
    passwordChange: {
      method: 'POST',
      path: '/v1/auth/password/change',
      group: 'Authentication',
      summary: 'Change your password',
      description: 'Ends every other session of the account.',
      access: person,
      body: { schema: types.PasswordChangeRequest },
      responses: { 200: { description: 'The password is changed.' } },
      problems: ['PASSWORD_WRONG', 'PASSWORD_WEAK', 'TOO_MANY_ATTEMPTS'],
      example: {
        body: { currentPassword: 'correct horse battery staple', newPassword: 'nine green bottles hang' },
      },
    },
    totpEnrol: {
      method: 'POST',
      path: '/v1/auth/totp',
      group: 'Authentication',
      summary: 'Begin to use one-time codes',
      description: 'Put the secret into an authenticator app, then prove it with totpConfirm.',
      access: person,
      responses: { 200: { description: 'The secret to enrol.', schema: types.TotpEnrolment } },
      problems: ['TOTP_ALREADY_ENABLED'],
      example: {
        response: {
          secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
          otpauthUri:
            'otpauth://totp/Millrace:ada?issuer=Millrace&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&algorithm=SHA1&digits=6&period=30',
        },
      },
    },
    totpConfirm: {
      method: 'POST',
      path: '/v1/auth/totp/confirm',
      group: 'Authentication',
      summary: 'Confirm the one-time-code device',
      access: person,
      body: { schema: types.TotpConfirmRequest },
      responses: {
        200: { description: 'Enabled. Keep the recovery codes.', schema: types.TotpConfirmation },
      },
      problems: ['CODE_WRONG', 'TOTP_NOT_ENROLLED', 'TOTP_ALREADY_ENABLED', 'TOO_MANY_ATTEMPTS'],
      example: {
        body: { code: '204117' },
        response: { recoveryCodes: ['k7m2p-9xqrt', 'w3b8n-4zvhd'] },
      },
    },
    totpRemove: {
      method: 'POST',
      path: '/v1/auth/totp/remove',
      group: 'Authentication',
      summary: 'Stop using one-time codes',
      access: person,
      body: { schema: types.TotpRemoveRequest },
      responses: { 200: { description: 'Disabled.' } },
      problems: ['PASSWORD_WRONG', 'TOTP_NOT_ENROLLED', 'TOO_MANY_ATTEMPTS'],
      example: { body: { password: 'correct horse battery staple', code: '204117' } },
    },
    whoAmI: {
      method: 'GET',
      path: '/v1/auth/me',
      group: 'Authentication',
      summary: 'Who is calling',
      description: 'With an API key it answers its owner and the one organization of the key.',
      access: { kind: 'account', apiKey: true },
      responses: { 200: { description: 'The account and its organizations.', schema: types.WhoAmI } },
      example: {
        response: {
          username: 'ada',
          email: 'ada@example.com',
          totpEnabled: false,
          organizations: [{ organizationName: 'acme', role: 'ADMIN' }],
        },
      },
    },
  });
}

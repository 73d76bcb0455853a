import Type from 'typebox';
import {
  Email,
  OrganizationName,
  oneOf,
  Password,
  patternWords,
  strict,
  TopicName,
  text,
  Username,
} from '../names.ts';
import { roles } from '../operation.ts';

const Code = Type.String({
  minLength: 1,
  maxLength: 32,
  description: 'The code, as it was mailed or shown.',
});
const UsernameOrEmail = Type.String({
  minLength: 1,
  maxLength: 254,
  pattern: '^[^\\s\\x00]+$',
  [patternWords]: 'must be a username or an email address, without white space',
  description: 'A username or an email address.',
});
const ChallengeSession = Type.String({
  minLength: 1,
  maxLength: 256,
  description: 'The session of the challenge; it lives five minutes and is good for one success.',
});
const RefreshToken = Type.String({ maxLength: 4096, description: 'The refresh token of the session.' });
const ErrorMessage = Type.String({ description: 'What went wrong and how to mend it, for a person.' });

export const SignUpRequest = strict({
  username: Username,
  email: Email,
  password: Password,
  tosAgreed: Type.Boolean({ description: 'Whether the person agrees to the terms of service.' }),
  marketingAgreed: Type.Boolean({ description: 'Whether the person agrees to receive news by mail.' }),
});

export const CodeRequired = strict(
  { username: Username },
  'The account is to be confirmed with the mailed code.',
);

export const SignUpResponse = strict({
  confirmed: Type.Optional(Type.Boolean({ description: 'The account is confirmed and can sign in.' })),
  errorMsg: Type.Optional(ErrorMessage),
  codeRequired: Type.Optional(CodeRequired),
});

export const SignUpConfirmCodeRequest = strict({ username: Username, code: Code });

export const SignInRequest = strict({ usernameOrEmail: UsernameOrEmail, password: Password });

export const SignInResult = strict({
  accessToken: Type.String({ description: 'Sent as `Authorization: Bearer` for the next 15 minutes.' }),
  refreshToken: Type.String({ description: 'Exchanged for a new result with signInRefreshToken.' }),
  idToken: Type.String({ description: 'Says who signed in. It is no credential.' }),
});

export const SignInChallenge = strict({ session: Type.String(), username: Username });

export const SignInResponse = strict(
  {
    result: Type.Optional(SignInResult),
    errorMsg: Type.Optional(ErrorMessage),
    challengeTotpCode: Type.Optional(SignInChallenge),
    challengePasswordChange: Type.Optional(SignInChallenge),
    codeRequired: Type.Optional(CodeRequired),
  },
  'At most one of the fields is present.',
);

export const SignInChallengeTotpCodeRequest = strict({
  username: Username,
  session: ChallengeSession,
  code: Code,
});

export const SignInChallengePasswordChangeRequest = strict({
  username: Username,
  session: ChallengeSession,
  newPassword: Password,
});

export const SignInRefreshTokenRequest = strict({ refreshToken: RefreshToken });
export const SignOutRequest = strict({ refreshToken: RefreshToken });

export const ApiKeyCreate = strict({
  description: text(1024, 'What the key is for.'),
  queueWhitelist: Type.Optional(
    Type.Array(TopicName, {
      maxItems: 100,
      description: 'With this the key may only publish, and only to these topics.',
    }),
  ),
  expiresAt: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 8_640_000_000_000_000,
      description: 'Epoch milliseconds, in the future.',
    }),
  ),
});

const apiKeyFields = {
  id: Type.String(),
  organizationName: OrganizationName,
  description: Type.String(),
  ownerType: oneOf(['USER', 'TASK'], 'Whether a person or a task version owns the key.'),
  ownerUsername: Type.String(),
  revocable: Type.Boolean(),
  queueWhitelist: Type.Optional(Type.Array(TopicName)),
  expiresAt: Type.Optional(Type.Integer({ description: 'Epoch milliseconds.' })),
  createdAt: Type.String({ format: 'date-time' }),
  lastUsedAt: Type.Optional(Type.String({ format: 'date-time' })),
};

export const ApiKey = strict(apiKeyFields);
export const ApiKeyWithSecret = strict({
  ...apiKeyFields,
  secret: Type.String({ description: 'The key itself, shown this once.' }),
});
export const ApiKeys = strict({ keys: Type.Array(ApiKey) });

export const TotpEnrolment = strict({
  secret: Type.String({ description: 'The shared secret in base32.' }),
  otpauthUri: Type.String({ description: 'The same for a QR code.' }),
});
export const TotpConfirmRequest = strict({ code: Code });
export const TotpConfirmation = strict({
  recoveryCodes: Type.Array(Type.String(), {
    description: 'Each may stand in for a code once. They are shown this once.',
  }),
});
export const TotpRemoveRequest = strict({ password: Password, code: Code });

export const PasswordForgotRequest = strict({ usernameOrEmail: UsernameOrEmail });
export const PasswordResetRequest = strict({
  usernameOrEmail: UsernameOrEmail,
  code: Code,
  newPassword: Password,
});
export const PasswordChangeRequest = strict({ currentPassword: Password, newPassword: Password });

export const RoleName = oneOf(roles, 'VIEWER reads, MEMBER adds writes, ADMIN adds members and limits.');

export const WhoAmI = strict({
  username: Username,
  email: Type.String(),
  totpEnabled: Type.Boolean(),
  organizations: Type.Array(strict({ organizationName: OrganizationName, role: RoleName })),
});

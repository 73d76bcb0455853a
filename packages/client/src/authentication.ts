import type { NamedType } from '@millrace/contract';
import type { CallOptions, Transport } from './transport.ts';

/** Accounts of people: sign up, sign in, one-time codes and passwords. */
export class Authentication {
  readonly #transport: Transport;
  readonly #open: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#open = transport.anonymous();
  }

  /**
   * Makes an account; a code is mailed that confirms it.
   *
   * @example
   * ```ts
   * const answer = await millrace.authentication.signUp({
   *   username: 'ada', email: 'ada@example.com', password: 'a long passphrase', tosAgreed: true, marketingAgreed: false,
   * });
   * if (answer.errorMsg !== undefined) console.error(answer.errorMsg);
   * ```
   */
  signUp(form: NamedType<'SignUpRequest'>, options: CallOptions = {}): Promise<NamedType<'SignUpResponse'>> {
    return this.#open.call('signUp', { body: form, ...options });
  }

  /**
   * Confirms an account with the mailed code.
   *
   * @example
   * ```ts
   * const { confirmed } = await millrace.authentication.confirm({ username: 'ada', code: '123456' });
   * ```
   */
  confirm(
    request: NamedType<'SignUpConfirmCodeRequest'>,
    options: CallOptions = {},
  ): Promise<NamedType<'SignUpResponse'>> {
    return this.#open.call('signUpConfirmCode', { body: request, ...options });
  }

  /**
   * Signs in. The answer has tokens, or says what else is needed; a client for the session is made with
   * `Millrace.withSession`.
   *
   * @example
   * ```ts
   * const answer = await millrace.authentication.signIn({ usernameOrEmail: 'ada', password: 'a long passphrase' });
   * if (answer.result !== undefined) await millrace.withSession(answer.result).authentication.whoAmI();
   * ```
   */
  signIn(
    request: NamedType<'SignInRequest'>,
    options: CallOptions = {},
  ): Promise<NamedType<'SignInResponse'>> {
    return this.#open.call('signIn', { body: request, ...options });
  }

  /**
   * Answers the challenge for a one-time code, or a recovery code.
   *
   * @example
   * ```ts
   * await millrace.authentication.answerTotp({ username: 'ada', session: 'the session of the challenge', code: '123456' });
   * ```
   */
  answerTotp(
    request: NamedType<'SignInChallengeTotpCodeRequest'>,
    options: CallOptions = {},
  ): Promise<NamedType<'SignInResponse'>> {
    return this.#open.call('signInChallengeTotpCode', { body: request, ...options });
  }

  /**
   * Answers the challenge for a new password, after an invitation.
   *
   * @example
   * ```ts
   * await millrace.authentication.answerPasswordChange({ username: 'ada', session: 'the session', newPassword: 'a long passphrase' });
   * ```
   */
  answerPasswordChange(
    request: NamedType<'SignInChallengePasswordChangeRequest'>,
    options: CallOptions = {},
  ): Promise<NamedType<'SignInResponse'>> {
    return this.#open.call('signInChallengePasswordChange', { body: request, ...options });
  }

  /**
   * Exchanges a refresh token for new tokens. A client with a session does this by itself.
   *
   * @example
   * ```ts
   * const { result } = await millrace.authentication.refresh('the refresh token');
   * ```
   */
  refresh(refreshToken: string, options: CallOptions = {}): Promise<NamedType<'SignInResponse'>> {
    return this.#open.call('signInRefreshToken', { body: { refreshToken }, ...options });
  }

  /**
   * Ends a session: its tokens stop working at once.
   *
   * @example
   * ```ts
   * await millrace.authentication.signOut('the refresh token');
   * ```
   */
  signOut(refreshToken: string, options: CallOptions = {}): Promise<undefined> {
    return this.#open.call('signOut', { body: { refreshToken }, ...options });
  }

  /**
   * Who the credential of this client belongs to, and in which organizations.
   *
   * @example
   * ```ts
   * const { username, organizations } = await millrace.authentication.whoAmI();
   * ```
   */
  whoAmI(options: CallOptions = {}): Promise<NamedType<'WhoAmI'>> {
    return this.#transport.call('whoAmI', options);
  }

  /**
   * Has a code mailed with which the password can be reset.
   *
   * @example
   * ```ts
   * await millrace.authentication.forgotPassword('ada@example.com');
   * ```
   */
  forgotPassword(usernameOrEmail: string, options: CallOptions = {}): Promise<undefined> {
    return this.#open.call('passwordForgot', { body: { usernameOrEmail }, ...options });
  }

  /**
   * Sets a new password with a mailed code.
   *
   * @example
   * ```ts
   * await millrace.authentication.resetPassword({ usernameOrEmail: 'ada', code: '123456', newPassword: 'another passphrase' });
   * ```
   */
  resetPassword(request: NamedType<'PasswordResetRequest'>, options: CallOptions = {}): Promise<undefined> {
    return this.#open.call('passwordReset', { body: request, ...options });
  }

  /**
   * Changes the password of the person who signed in, and ends their other sessions.
   *
   * @example
   * ```ts
   * await millrace.authentication.changePassword({ currentPassword: 'a long passphrase', newPassword: 'another passphrase' });
   * ```
   */
  changePassword(request: NamedType<'PasswordChangeRequest'>, options: CallOptions = {}): Promise<undefined> {
    return this.#transport.call('passwordChange', { body: request, ...options });
  }

  /**
   * Begins to enrol a one-time-code device.
   *
   * @example
   * ```ts
   * const { otpauthUri } = await millrace.authentication.enrolTotp();
   * ```
   */
  enrolTotp(options: CallOptions = {}): Promise<NamedType<'TotpEnrolment'>> {
    return this.#transport.call('totpEnrol', options);
  }

  /**
   * Finishes the enrolment with a code of the device; the recovery codes are shown this once.
   *
   * @example
   * ```ts
   * const { recoveryCodes } = await millrace.authentication.confirmTotp('123456');
   * ```
   */
  confirmTotp(code: string, options: CallOptions = {}): Promise<NamedType<'TotpConfirmation'>> {
    return this.#transport.call('totpConfirm', { body: { code }, ...options });
  }

  /**
   * Removes the one-time-code device.
   *
   * @example
   * ```ts
   * await millrace.authentication.removeTotp({ password: 'a long passphrase', code: '123456' });
   * ```
   */
  removeTotp(request: NamedType<'TotpRemoveRequest'>, options: CallOptions = {}): Promise<undefined> {
    return this.#transport.call('totpRemove', { body: request, ...options });
  }
}

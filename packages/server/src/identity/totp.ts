import { Secret, TOTP } from 'otpauth';
import type { Clock } from '../platform/clock.ts';
import { keyedDigest } from '../platform/digest.ts';
import type { Random } from '../platform/random.ts';
import { type Account, type Queries, useRecoveryCode, useTotpStep } from './account-store.ts';

const issuer = 'Millrace';
const period = 30;
/** Steps before and after the present one that are accepted, for clocks that disagree. */
const window = 1;
const recoveryCodeCount = 10;
/** Without letters and digits that are easily mistaken for each other. */
const recoveryAlphabet = '23456789abcdefghjkmnpqrstvwxyz';

/** One-time codes of an authenticator app (RFC 6238), and the recovery codes that stand in for them. */
export class TotpCodes {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #pepper: string;

  constructor(clock: Clock, random: Random, pepper: string) {
    this.#clock = clock;
    this.#random = random;
    this.#pepper = pepper;
  }

  /** A new secret and the address that an authenticator app reads from a QR code. */
  enrolment(username: string): { secret: string; otpauthUri: string } {
    const secret = new Secret({ buffer: Uint8Array.from(this.#random.bytes(20)).buffer });
    return { secret: secret.base32, otpauthUri: device(secret.base32, username).toString() };
  }

  /** The time step of a right code, or undefined for a wrong one. */
  step(secret: string, code: string): number | undefined {
    if (!/^\d{6}$/.test(code)) return undefined;
    const timestamp = this.#clock.now();
    const delta = device(secret, '').validate({ token: code, timestamp, window });
    return delta === null ? undefined : Math.floor(timestamp / 1000 / period) + delta;
  }

  /** Uses up a code of the account's device, or one of its recovery codes. */
  async redeem(queries: Queries, account: Account, given: string): Promise<boolean> {
    const code = given.replace(/[\s-]/g, '').toLowerCase();
    if (account.totp_secret === null) return false;
    const step = this.step(account.totp_secret, code);
    if (step !== undefined) return useTotpStep(queries, account.id, step);
    return useRecoveryCode(queries, account.id, this.hashRecoveryCode(account.id, code));
  }

  recoveryCodes(): string[] {
    return Array.from({ length: recoveryCodeCount }, () => {
      const letters = Array.from({ length: 10 }, () =>
        recoveryAlphabet.charAt(this.#random.integer(recoveryAlphabet.length)),
      ).join('');
      return `${letters.slice(0, 5)}-${letters.slice(5)}`;
    });
  }

  hashRecoveryCode(accountId: string, code: string): string {
    return keyedDigest(this.#pepper, 'recovery-code', accountId, code.replace('-', ''));
  }
}

function device(secret: string, label: string): TOTP {
  return new TOTP({ issuer, label, secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period });
}

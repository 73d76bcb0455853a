import type { Database } from '../database/database.ts';
import type { Mailer } from '../mail/mail.ts';
import type { Clock } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';
import type { Attempts } from './attempts.ts';
import type { Challenges } from './challenges.ts';
import type { MailedCodes } from './mailed-codes.ts';
import type { Passwords } from './passwords.ts';
import type { Profiles } from './profiles.ts';
import type { Sessions } from './sessions.ts';
import type { TotpCodes } from './totp.ts';

/** What the services of this room work with. */
export interface IdentityParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly mailer: Mailer;
  readonly passwords: Passwords;
  readonly codes: MailedCodes;
  readonly challenges: Challenges;
  readonly totp: TotpCodes;
  readonly sessions: Sessions;
  readonly profiles: Profiles;
  readonly attempts: Attempts;
  readonly signUp: 'open' | 'invite';
}

/** A person signing in, before they are known: where from. */
export interface Visitor {
  /** The address prefix that attempts are counted by. */
  readonly address: string;
}

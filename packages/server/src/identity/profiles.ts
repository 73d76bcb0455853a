import type { Database } from '../database/database.ts';
import { LoadingCache } from '../platform/cache.ts';
import type { Clock } from '../platform/clock.ts';
import { findAccount } from './account-store.ts';

/** What a person is told about their own account. */
export interface Profile {
  readonly accountId: string;
  readonly username: string;
  readonly email: string;
  readonly totpEnabled: boolean;
}

const channel = 'accounts';

/** The profiles of accounts, from memory while they do not change. */
export class Profiles {
  readonly #database: Database;
  readonly #profiles: LoadingCache<Profile>;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#profiles = new LoadingCache({
      load: async (id) => {
        const account = await findAccount(database.query, id);
        return (
          account && {
            accountId: account.id,
            username: account.username,
            email: account.email,
            totpEnabled: account.totp_secret !== null,
          }
        );
      },
      clock,
      trustMilliseconds: database.trustMilliseconds,
      capacity: 20_000,
    });
    database.listen(
      channel,
      (id) => this.#profiles.invalidate(id),
      () => this.#profiles.clear(),
    );
  }

  get(accountId: string): Promise<Profile | undefined> {
    return this.#profiles.get(accountId);
  }

  async changed(accountId: string): Promise<void> {
    await this.#database.announce(channel, accountId);
  }
}

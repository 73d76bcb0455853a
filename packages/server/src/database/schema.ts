/**
 * The tables as they are after the last migration. Times are milliseconds since the epoch, ids are text,
 * flags are 0 or 1.
 */
export interface Schema {
  migrations: MigrationRow;
  accounts: AccountRow;
  recovery_codes: RecoveryCodeRow;
  mailed_codes: MailedCodeRow;
  challenges: ChallengeRow;
  sessions: SessionRow;
  refresh_tokens: RefreshTokenRow;
  signing_keys: SigningKeyRow;
  secrets: SecretRow;
  token_buckets: TokenBucketRow;
  known_addresses: KnownAddressRow;
  organizations: OrganizationRow;
  members: MemberRow;
  api_keys: ApiKeyRow;
  state_entries: StateEntryRow;
  topic_definitions: TopicDefinitionRow;
  consumers: ConsumerRow;
  consumer_nodes: ConsumerNodeRow;
  consumer_registrations: ConsumerRegistrationRow;
  consumer_shares: ConsumerShareRow;
  parked_messages: ParkedMessageRow;
  dead_letters: DeadLetterRow;
}

export type Flag = 0 | 1;

/** A migration that has been applied. */
export interface MigrationRow {
  name: string;
  applied_at: number;
}

export interface AccountRow {
  id: string;
  username: string;
  username_lower: string;
  email: string;
  /** Unique among confirmed accounts only, so that nobody can block an address that is not theirs. */
  email_lower: string;
  password_hash: string;
  confirmed_at: number | null;
  must_change_password: Flag;
  temporary_password_expires_at: number | null;
  tos_agreed_at: number;
  marketing_agreed: Flag;
  totp_secret: string | null;
  totp_enabled_at: number | null;
  /** The time step of the last code that was accepted, so that no code is accepted twice. */
  totp_last_step: number | null;
  totp_pending_secret: string | null;
  created_at: number;
}

export interface RecoveryCodeRow {
  account_id: string;
  code_hash: string;
}

export interface MailedCodeRow {
  account_id: string;
  purpose: 'sign-up' | 'password-reset';
  code_hash: string;
  expires_at: number;
  tries_left: number;
}

export interface ChallengeRow {
  id_hash: string;
  account_id: string;
  kind: 'totp' | 'password-change';
  tries_left: number;
  expires_at: number;
}

export interface SessionRow {
  id: string;
  account_id: string;
  created_at: number;
  expires_at: number;
  last_used_at: number;
}

export interface RefreshTokenRow {
  token_hash: string;
  session_id: string;
  created_at: number;
  rotated_at: number | null;
}

export interface SigningKeyRow {
  id: string;
  generation: number;
  public_jwk: string;
  private_jwk: string;
  created_at: number;
  /** From here on it signs no more. */
  retires_at: number;
  /** From here on nothing it signed is accepted. */
  expires_at: number;
}

export interface SecretRow {
  name: string;
  value: string;
  created_at: number;
}

/** A limit on attempts or requests, as the one number that says how much of it is left. */
export interface TokenBucketRow {
  key: string;
  /** When the bucket will be full again, in microseconds since the epoch. */
  full_at: number;
}

export interface KnownAddressRow {
  account_id: string;
  address: string;
  last_success_at: number;
}

export interface OrganizationRow {
  id: string;
  name: string;
  name_lower: string;
  rate_limit_level: string;
  created_at: number;
  created_by: string;
}

export interface MemberRow {
  organization_id: string;
  account_id: string;
  role: string;
  joined_at: number;
}

export interface ApiKeyRow {
  id: string;
  organization_id: string;
  secret_hash: string;
  description: string;
  owner_type: string;
  owner_account_id: string | null;
  owner_username: string;
  revocable: Flag;
  /** A JSON array of names, or null for all. */
  queue_whitelist: string | null;
  expires_at: number | null;
  created_at: number;
  last_used_at: number | null;
  revoked_at: number | null;
}

export interface StateEntryRow {
  organization_id: string;
  /** The parts of the key, escaped and joined: unique in its organization, and what entries are sorted by. */
  merged_key: string;
  version: number;
  /** From here on it is gone; always a whole second. */
  expires_at: number | null;
  updated_at: number;
  /** A JSON array of texts. */
  key_parts: string;
  /** A JSON object. */
  attributes: string;
}

/** A consumer of the event log that some node has registered at some time. */
export interface ConsumerRow {
  id: string;
  organization_id: string;
  created_at: number;
}

/** A node that runs consumers: alive until it expires, by the clock of the database. */
export interface ConsumerNodeRow {
  id: string;
  /** One run of the node, so that a new run is never taken for the one before. */
  incarnation: string;
  expires_at: number;
  /** Counts the changes of what it has registered, so that others read it only when it changed. */
  registrations: number;
}

export interface ConsumerRegistrationRow {
  incarnation: string;
  consumer_id: string;
}

/** How far a consumer has come in a partition, and which run of a node works on it. */
export interface ConsumerShareRow {
  consumer_id: string;
  organization_id: string;
  topic_name: string;
  partition: number;
  /** Everything up to here was handled, parked or dead-lettered. */
  cursor: number;
  /** Grows with every change, so that one who lost the share cannot change it any more. */
  version: number;
  holder: string | null;
}

/** A record that failed and waits to be tried again, or that waits behind one of its key. */
export interface ParkedMessageRow {
  consumer_id: string;
  topic_name: string;
  partition: number;
  record_offset: number;
  key: string;
  attempts: number;
  /** Null for one that waits behind another. */
  next_attempt_at: number | null;
  error: string | null;
  /** The record as JSON where the log may no longer have it; otherwise it is read from the log. */
  record: string | null;
}

export interface DeadLetterRow {
  consumer_id: string;
  /** Sorts by the time of failure. */
  id: string;
  organization_id: string;
  topic_name: string;
  partition: number;
  record_offset: number;
  attempts: number;
  error: string;
  failed_at: number;
  /** Is to be handled once more; the holder of its share moves it to the parked messages. */
  redriven: Flag;
  /** The size of the record. */
  bytes: number;
  /** The record as JSON. */
  record: string;
}

/** The topics of an organization, all in one document that has one version. */
export interface TopicDefinitionRow {
  organization_id: string;
  version: number;
  /** JSON. */
  document: string;
}

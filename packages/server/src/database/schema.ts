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
  lake_tables: LakeTableRow;
  lake_layouts: LakeLayoutRow;
  lake_files: LakeFileRow;
  lake_schemas: LakeSchemaRow;
  queries: QueryRow;
  tasks: TaskRow;
  task_versions: TaskVersionRow;
  task_deployments: TaskDeploymentRow;
  task_logs: TaskLogRow;
  task_log_chunks: TaskLogChunkRow;
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

export type TaskPhase = 'CREATING' | 'STARTING' | 'UPDATING' | 'RUNNING' | 'PAUSING' | 'PAUSED';
export type TaskUpdateStatus = 'SUCCESSFUL' | 'FAILED' | 'IN_PROGRESS';

export interface TaskRow {
  organization_id: string;
  task_id: string;
  /** Tells a task from one of the same name that was deleted before. */
  life: string;
  /** Grows with every change, so that nobody acts on what is no longer so. */
  revision: number;
  phase: TaskPhase;
  active_version: number | null;
  /** The last version that was given a number. */
  last_version: number;
  update_status: TaskUpdateStatus | null;
  update_reason: string | null;
  /** The node on which a deployment or activation is under way. */
  updating_node: string | null;
  updated_at: number;
  created_at: number;
}

/** A version of a task. It never changes. */
export interface TaskVersionRow {
  organization_id: string;
  task_id: string;
  version: number;
  /** The upload that holds its code. */
  session_id: string;
  description: string;
  /** The API key of its own, and its secret under a key of the service. */
  key_id: string;
  sealed_key: string;
  created_at: number;
  /** JSON: how it runs, what it reads and where it writes. */
  settings: string;
}

/** An upload, and what became of it when it was deployed. */
export interface TaskDeploymentRow {
  session_id: string;
  organization_id: string;
  task_id: string;
  status: 'UPLOAD' | 'DEPLOYING' | 'SUCCESS' | 'FAILED';
  error: string | null;
  version: number | null;
  description: string | null;
  /** The node that deploys it. */
  node: string | null;
  /** The key that was made for it. */
  key_id: string | null;
  changed_at: number;
}

/** A table of the lake: what the messages of a topic look like in SQL. */
export interface LakeTableRow {
  organization_id: string;
  topic_name: string;
  /** Grows with every change of the columns. */
  version: number;
  /** Ids of columns are never used twice, so the next one is remembered. */
  next_column_id: number;
  /** Whether an uploaded schema says which columns there are. */
  fixed: Flag;
  /** A JSON array of columns. */
  columns: string;
}

/** The columns that files were written with. */
export interface LakeLayoutRow {
  organization_id: string;
  topic_name: string;
  /** A digest of the columns. */
  id: string;
  /** A JSON array of columns. */
  columns: string;
}

/** A file of a table. It is live, so that queries read it, until it is removed. */
export interface LakeFileRow {
  organization_id: string;
  topic_name: string;
  key: string;
  /** When the hour of acceptance began that its rows belong to. */
  hour: number;
  layout_id: string;
  row_count: number;
  bytes: number;
  /** How many rows have something in `_rescued`. */
  rescued: number;
  min_ingested_at: number;
  max_ingested_at: number;
  created_at: number;
  /** No query begins to read it any more; the object goes a while later. */
  removed_at: number | null;
  /** Live and worth merging with others of its hour. */
  small: Flag;
}

/** A version of the schema of a topic. */
export interface LakeSchemaRow {
  organization_id: string;
  topic_name: string;
  version: number;
  origin: 'uploaded' | 'inferred';
  created_at: number;
  schema: string;
}

/** A SQL query of an organization. */
export interface QueryRow {
  organization_id: string;
  id: string;
  sql: string;
  /** QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED. */
  state: string;
  username: string | null;
  /** The node that runs it. */
  node_id: string;
  /** While it is queued or running its node moves this on; past it the node has gone. */
  alive_until: number;
  submitted_at: number;
  completed_at: number | null;
  bytes_scanned: number | null;
  execution_milliseconds: number | null;
  error: string | null;
  /** The columns of the result as JSON. */
  columns: string | null;
  /** The size of the stored rows. */
  rows_bytes: number | null;
}

/** What a task has written, as far as it is kept. */
export interface TaskLogRow {
  organization_id: string;
  task_id: string;
  /** The place of its newest line. Places only ever grow, also from one task to the next of the same name. */
  last_position: number;
  /** How many lines are kept, and their size. */
  lines: number;
  bytes: number;
}

/** Some lines of a task that follow each other. */
export interface TaskLogChunkRow {
  organization_id: string;
  task_id: string;
  /** The place of its last line; the others are right before it. */
  last_position: number;
  lines: number;
  bytes: number;
  newest_time: number;
  /** A JSON array of lines. */
  content: string;
}

import type { AccountRow, ApiKeyRow, OrganizationRow, Schema, SessionRow } from './schema.ts';

/** Past 32 bits and, in microseconds, close to the largest safe integer. */
const time = 1_790_000_000_123;

export function account(id: string, other: Partial<AccountRow> = {}): AccountRow {
  return {
    id,
    username: `User ${id}`,
    username_lower: `user ${id}`,
    email: `${id}@Example.com`,
    email_lower: `${id}@example.com`,
    password_hash: '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA',
    confirmed_at: time,
    must_change_password: 0,
    temporary_password_expires_at: null,
    tos_agreed_at: time,
    marketing_agreed: 1,
    totp_secret: null,
    totp_enabled_at: null,
    totp_last_step: null,
    totp_pending_secret: 'JBSWY3DPEHPK3PXP',
    created_at: time,
    ...other,
  };
}

export function organization(id: string): OrganizationRow {
  return {
    id,
    name: `Größe ${id} 漢字 🎈`,
    name_lower: `größe ${id} 漢字 🎈`,
    rate_limit_level: 'standard',
    created_at: time,
    created_by: 'someone',
  };
}

export function session(id: string, account_id: string): SessionRow {
  return { id, account_id, created_at: time, expires_at: time + 1, last_used_at: time };
}

function apiKey(id: string, organization_id: string, owner_account_id: string | null): ApiKeyRow {
  return {
    id,
    organization_id,
    secret_hash: `hash ${id}`,
    description: 'a key, "quoted" and \'quoted\'',
    owner_type: 'account',
    owner_account_id,
    owner_username: 'someone',
    revocable: 1,
    queue_whitelist: '["orders"]',
    expires_at: null,
    created_at: time,
    last_used_at: null,
    revoked_at: null,
  };
}

export const tables = [
  'accounts',
  'recovery_codes',
  'mailed_codes',
  'challenges',
  'sessions',
  'refresh_tokens',
  'signing_keys',
  'secrets',
  'token_buckets',
  'known_addresses',
  'organizations',
  'members',
  'api_keys',
  'state_entries',
  'topic_definitions',
  'consumers',
  'consumer_nodes',
  'consumer_registrations',
  'consumer_shares',
  'parked_messages',
  'dead_letters',
] as const;

/** One row of every table, in an order in which they can be written. */
export const oneOfEach: { readonly [Table in Exclude<keyof Schema, 'migrations'>]: Schema[Table] } = {
  accounts: account('a1'),
  recovery_codes: { account_id: 'a1', code_hash: 'hash' },
  mailed_codes: {
    account_id: 'a1',
    purpose: 'sign-up',
    code_hash: 'hash',
    expires_at: time,
    tries_left: 5,
  },
  challenges: { id_hash: 'hash', account_id: 'a1', kind: 'totp', tries_left: 3, expires_at: time },
  sessions: session('s1', 'a1'),
  refresh_tokens: { token_hash: 'hash', session_id: 's1', created_at: time, rotated_at: null },
  signing_keys: {
    id: 'k1',
    generation: 1,
    public_jwk: '{}',
    private_jwk: '{}',
    created_at: time,
    retires_at: time + 1,
    expires_at: time + 2,
  },
  secrets: { name: 'cursor', value: 'c2VjcmV0', created_at: time },
  token_buckets: { key: 'o1', full_at: time * 1000 },
  known_addresses: { account_id: 'a1', address: '2001:db8::1', last_success_at: time },
  organizations: organization('o1'),
  members: { organization_id: 'o1', account_id: 'a1', role: 'admin', joined_at: time },
  api_keys: apiKey('key1', 'o1', 'a1'),
  state_entries: {
    organization_id: 'o1',
    merged_key: 'user:a\\:b',
    version: 2 ** 31 + 1,
    expires_at: time,
    updated_at: time,
    key_parts: '["user","a:b"]',
    attributes: '{"visits":7,"__proto__":{"漢":"\\u0000"}}',
  },
  topic_definitions: { organization_id: 'o1', version: 3, document: '{}' },
  consumers: { id: 'task/o1/t1', organization_id: 'o1', created_at: time },
  consumer_nodes: { id: 'n1', incarnation: 'n1.1', expires_at: time, registrations: 3 },
  consumer_registrations: { incarnation: 'n1.1', consumer_id: 'task/o1/t1' },
  consumer_shares: {
    consumer_id: 'task/o1/t1',
    organization_id: 'o1',
    topic_name: 'orders',
    partition: 15,
    cursor: 2 ** 40,
    version: 2 ** 31 + 1,
    holder: null,
  },
  parked_messages: {
    consumer_id: 'task/o1/t1',
    topic_name: 'orders',
    partition: 15,
    record_offset: 2 ** 40,
    key: 'customer 漢',
    attempts: 2,
    next_attempt_at: time,
    error: 'no such table',
    record: null,
  },
  dead_letters: {
    consumer_id: 'task/o1/t1',
    id: 'd1',
    organization_id: 'o1',
    topic_name: 'orders',
    partition: 15,
    record_offset: 2 ** 40,
    attempts: 5,
    error: 'no such table',
    failed_at: time,
    redriven: 0,
    bytes: 12,
    record: '{"key":"\\u0000"}',
  },
};

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Which rooms a room may use. Imports run one way: http, then features, then ports, then the platform. */
const uses: Readonly<Record<string, readonly string[]>> = {
  platform: [],
  database: ['platform'],
  limits: ['database', 'platform'],
  mail: ['platform'],
  objects: ['platform'],
  config: ['platform'],
  identity: ['database', 'limits', 'mail', 'platform'],
  events: ['platform'],
  topics: ['database', 'platform'],
  state: ['consumers', 'topics', 'events', 'database', 'platform'],
  consumers: ['events', 'database', 'platform'],
  ingest: ['topics', 'events', 'platform'],
  lake: ['consumers', 'topics', 'events', 'objects', 'database', 'platform'],
  organizations: ['identity', 'database', 'limits', 'mail', 'platform'],
  tasks: ['consumers', 'topics', 'events', 'identity', 'objects', 'database', 'platform'],
  query: ['lake', 'state', 'objects', 'database', 'platform'],
  http: [
    'tasks',
    'query',
    'ingest',
    'consumers',
    'topics',
    'state',
    'lake',
    'events',
    'organizations',
    'identity',
    'database',
    'limits',
    'mail',
    'objects',
    'platform',
  ],
};

/** Adapters: only the composition root, their own folder and the opening of their room may name them. */
const adapters = [
  /^database\/(sqlite|postgres)\//,
  /^limits\/(memory|postgres)\.ts$/,
  /^mail\/(outbox|smtp)\.ts$/,
  /^objects\/(files|s3)\//,
  /^events\/sqlite\//,
  /^query\/duckdb\//,
  /^tasks\/execution\/(?!execution\.ts$)/,
];
const openers = ['compose.ts', 'database/open.ts', 'objects/relay.ts'];

const root = dirname(fileURLToPath(import.meta.url));

interface Import {
  readonly from: string;
  readonly to: string;
}

function imports(): Import[] {
  const found: Import[] = [];
  for (const entry of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts')) continue;
    const text = readFileSync(join(root, entry), 'utf8');
    for (const match of text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
      const to = relative(root, resolve(root, dirname(entry), match[1] ?? ''));
      if (!to.startsWith('..')) found.push({ from: entry, to });
    }
  }
  return found;
}

function isTest(file: string): boolean {
  return /\.(test|suite|fixture)\.ts$/.test(file);
}

function roomOf(file: string): string | undefined {
  return file.includes('/') ? file.split('/')[0] : undefined;
}

describe('the house', () => {
  const all = imports();

  it('has only rooms that are in the plan', () => {
    const rooms = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    assert.deepEqual(rooms.map((room) => room.name).sort(), Object.keys(uses).sort());
    assert.ok(all.length > 100, `${all.length} imports were read`);
  });

  it('has imports that run one way', () => {
    const wrong = all.filter(({ from, to }) => {
      const room = roomOf(from);
      const target = roomOf(to);
      if (isTest(from) || room === undefined || target === undefined || target === room) return false;
      return !(uses[room] ?? []).includes(target);
    });
    assert.deepEqual(wrong, []);
  });

  it('names adapters in the composition root only', () => {
    const wrong = all.filter(({ from, to }) => {
      const adapter = adapters.find((pattern) => pattern.test(to));
      return adapter !== undefined && !isTest(from) && !adapter.test(from) && !openers.includes(from);
    });
    assert.deepEqual(wrong, []);
  });
});

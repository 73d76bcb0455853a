import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildContract, listOperations } from './index.ts';
import { roleTable } from './interface-tables.fixture.ts';

const contract = buildContract();
const operations = listOperations(contract);

test('who may call what is as the interface says', () => {
  const described = Object.fromEntries(
    operations.map(({ id, access }) => [id, access.kind === 'organization' ? access.role : access.kind]),
  );
  assert.deepEqual(described, roleTable);
});

test('an operation is under an organization exactly when it needs membership', () => {
  for (const { id, path, access } of operations) {
    const inOrganization = path.startsWith('/v1/organization/{organizationName}/');
    assert.equal(inOrganization, access.kind === 'organization' || access.kind === 'deployment', id);
  }
});

test('a restricted key may publish and nothing else; a task key may publish and use state', () => {
  const allowed = (property: 'restrictedKey' | 'taskKey') =>
    operations
      .filter(({ access }) => access.kind === 'organization' && access[property] !== undefined)
      .map(({ id }) => id);
  assert.deepEqual(allowed('restrictedKey'), ['message', 'messages']);
  assert.deepEqual(allowed('taskKey'), [
    'message',
    'messages',
    'getState',
    'listState',
    'upsertState',
    'deleteState',
    'incrementState',
  ]);
});

test('an API key never makes keys or changes membership above the role of MEMBER', () => {
  for (const id of ['createApiKey', 'inviteToOrganization', 'setMemberRole', 'removeMember'] as const) {
    const { access } = contract.operations[id];
    assert.equal(access.apiKeyRole, 'MEMBER', id);
  }
});

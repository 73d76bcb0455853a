import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { buildContract, listOperations, type Operation } from '@millrace/contract';
import { curlExample } from './curl.ts';

const contract = buildContract();
const baseUrl = 'http://127.0.0.1:8080';

/** The arguments that a shell would start curl with. */
function argumentsOf(command: string): readonly string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  const output = execFileSync('sh', ['-c', script], {
    encoding: 'utf8',
    env: { MILLRACE_API_KEY: 'key', ACCESS_TOKEN: 'token' },
    timeout: 10_000,
  });
  return output.split('\0').slice(0, -1);
}

test('every example starts with curl and leaves no placeholder', () => {
  for (const operation of listOperations(contract)) {
    const command = curlExample(operation, baseUrl);
    assert.match(command, /^curl /, operation.id);
    assert.doesNotMatch(command.split('\n')[0] ?? '', /[{}*]/, operation.id);
  }
});

test('a shell reads an example as the method, the URL, the headers and the body that are meant', () => {
  assert.deepEqual(argumentsOf(curlExample(contract.operations.message, baseUrl)), [
    '-X',
    'POST',
    `${baseUrl}/v1/organization/acme/topic/clicks/message?messageKey=user-42&messageId=c-1001`,
    '-H',
    'Authorization: Bearer key',
    '-H',
    'Content-Type: application/json',
    '-d',
    '{"page":"/pricing","at":"2026-11-15T09:30:00.000Z"}',
  ]);
  const deploy = argumentsOf(curlExample(contract.operations.deployVersion, baseUrl));
  assert.ok(deploy.includes('InvocationType: RequestResponse'));
  assert.deepEqual(JSON.parse(deploy.at(-1) ?? ''), contract.operations.deployVersion.example.body);
});

test('a batch is sent as lines', () => {
  const batch = argumentsOf(curlExample(contract.operations.messages, baseUrl));
  assert.deepEqual(batch.slice(-2), [
    '--data-binary',
    '{"user":"u1","id":"c-1","page":"/"}\n{"user":"u2","id":"c-2","page":"/pricing"}',
  ]);
});

test('quotes in an example cannot end the argument', () => {
  const operation: Operation = {
    ...contract.operations.signOut,
    example: { body: { refreshToken: "'; echo oops; '$(echo oops)`echo oops`" } },
  };
  const parsed = argumentsOf(curlExample(operation, "http://a'b"));
  assert.equal(parsed[2], "http://a'b/v1/auth/sign-out");
  assert.deepEqual(JSON.parse(parsed.at(-1) ?? ''), operation.example.body);
});

test('the credential is the one that the operation accepts', () => {
  assert.doesNotMatch(curlExample(contract.operations.signIn, baseUrl), /Authorization/);
  assert.match(curlExample(contract.operations.getTopics, baseUrl), /\$MILLRACE_API_KEY/);
  assert.match(curlExample(contract.operations.inviteToOrganization, baseUrl), /\$ACCESS_TOKEN/);
  assert.match(curlExample(contract.operations.createOrganization, baseUrl), /\$ACCESS_TOKEN/);
});

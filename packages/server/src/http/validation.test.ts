import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { buildContract, openApiDocument } from '@millrace/contract';
import type { Problem } from '../platform/problem.ts';
import { RequestValidator } from './validation.ts';

const contract = buildContract();
const { operations } = contract;

function told(refusal: Problem | undefined): string[] {
  return (refusal?.errors ?? []).map(({ pointer, message }) => `${pointer} ${message}`);
}

describe('a request that is not valid', () => {
  it('is told in words which names there may be', () => {
    const signUp = new RequestValidator(operations.signUp);
    const rest = { password: 'p', tosAgreed: true, marketingAgreed: true };
    const refusal = signUp.body({ ...rest, username: 'a b', email: 'nobody' });
    assert.deepEqual(told(refusal), [
      '/username must be 1 to 128 letters, digits and punctuation marks without white space, and not just one or two dots',
      '/email must be an email address, such as ada@example.org',
    ]);
    assert.equal(
      refusal?.detail,
      'The request is not valid: /username must be 1 to 128 letters, digits and punctuation marks without white space, and not just one or two dots.',
    );
    const createOrganization = new RequestValidator(operations.createOrganization);
    assert.deepEqual(told(createOrganization.query({ organizationName: 'a.b' })), [
      '/query/organizationName must be 1 to 64 letters, digits, - or _, beginning with a letter or digit',
    ]);
    const messages = new RequestValidator(operations.messages);
    assert.deepEqual(told(messages.query({ messageKeyPath: 'id' })), [
      '/query/messageKeyPath must be a JSON pointer, such as /user/id',
    ]);
  });

  it('is told so wherever in a body the name stands', () => {
    const deploy = new RequestValidator(operations.deployVersion);
    const { body } = operations.deployVersion.example;
    const topicName = 'must be 1 to 128 letters, digits, dots, - or _, beginning with a letter, a digit or -';
    assert.deepEqual(told(deploy.body({ ...body, inputQueueNames: ['good', '_bad'] })), [
      `/inputQueueNames/1 ${topicName}`,
    ]);
    assert.deepEqual(told(deploy.body({ ...body, environment: { '1A': 'x', B: 'a\0' } })), [
      '/environment/1A must be named with at most 128 letters, digits and _, not beginning with a digit',
      '/environment/B must not contain NUL characters',
    ]);
    assert.deepEqual(told(deploy.body({ ...body, inputQueues: [] })), ['/inputQueues is not a known field']);
  });

  it('is told in words what a time looks like', () => {
    const logs = new RequestValidator(operations.taskLogs);
    assert.deepEqual(told(logs.query({ since: 'yesterday' })), [
      '/query/since must be a time, such as 2026-11-15T09:30:00.000Z',
    ]);
  });

  it('is told nothing that the documents for programs would carry', () => {
    assert.doesNotMatch(JSON.stringify(openApiDocument(contract, { version: '1' })), /patternWords/);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathReader, readQuery } from './address.ts';

describe('an address of the fast lane', () => {
  it('is a path with plain names in the places of its parameters', () => {
    const read = pathReader('/v1/organization/{organizationName}/topic/{topicName}/message');
    const found = { organizationName: 'acme', topicName: 'web.clicks_1~a-b' };
    assert.deepEqual(read('/v1/organization/acme/topic/web.clicks_1~a-b/message'), found);
    for (const path of [
      '/v1/organization/acme/topic/clicks/messages',
      '/v1/organization/acme/topic/clicks/message/',
      '//v1/organization/acme/topic/clicks/message',
      '/v1/organization/acme/topic//message',
      '/v1/organization/acme/topic/a/b/message',
      '/v1/organization/acme/topic/cl%69cks/message',
      '/v1/organization/acme/topic/clicks;a/message',
      '/v1/organization/acme/topic/clicks/message#a',
      '/V1/organization/acme/topic/clicks/message',
      'http://host/v1/organization/acme/topic/clicks/message',
    ]) {
      assert.equal(read(path), undefined, path);
    }
  });

  it('has a query of names and values, each once and written plainly', () => {
    assert.deepEqual(readQuery('messageKey=user-42'), { messageKey: 'user-42' });
    assert.deepEqual(readQuery('messageKey=a%2Fb%20%C3%A9&messageId=x:1'), {
      messageKey: 'a/b é',
      messageId: 'x:1',
    });
    for (const query of [
      '',
      'messageKey',
      'messageKey=',
      '=a',
      'messageKey=a&',
      'messageKey=a&messageKey=b',
      'messageKey=a+b',
      'messageKey=a=b',
      'messageKey=a#b',
      'messageKey=a?b',
      'messageKey[]=a',
      'message%4Bey=a',
      'messageKey=%',
      'messageKey=%zz',
      'messageKey=%ff',
      '__proto__=a',
      'messageKey=a;messageId=b',
    ]) {
      assert.equal(readQuery(query), undefined, query);
    }
  });
});

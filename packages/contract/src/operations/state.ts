import { bodyFor } from '../body-bytes.ts';
import type { Limits } from '../limits.ts';
import { inOrganization } from '../names.ts';
import { defineOperations } from '../operation.ts';
import type { Types } from '../types/index.ts';
import { organization, stateEntry } from './examples.ts';

const reader = { kind: 'organization', role: 'VIEWER', taskKey: 'state' } as const;
const writer = { kind: 'organization', role: 'MEMBER', taskKey: 'state' } as const;

export function stateOperations(types: Types, limits: Limits) {
  return defineOperations({
    getState: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/state/get',
      group: 'State',
      summary: 'Read one entry',
      access: reader,
      parameters: { path: inOrganization },
      body: { schema: types.StateGetRequest },
      responses: { 200: { description: 'The entry.', schema: types.StateEntry } },
      problems: ['STATE_NOT_FOUND'],
      example: { path: organization, body: { keyParts: ['user', '42'] }, response: stateEntry },
    },
    listState: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/state/list',
      group: 'State',
      summary: 'List entries',
      access: reader,
      parameters: { path: inOrganization },
      body: { schema: types.StateListRequest, optional: true },
      responses: { 200: { description: 'A page of entries by key.', schema: types.StateListResponse } },
      problems: ['TOKEN_INVALID'],
      example: {
        path: organization,
        body: { keyPrefix: ['user'], limit: 50 },
        response: { entries: [stateEntry], nextCursor: null },
      },
    },
    upsertState: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/state/upsert',
      group: 'State',
      summary: 'Write one entry',
      access: writer,
      parameters: { path: inOrganization },
      body: { schema: types.StateUpsertRequest },
      responses: { 200: { description: 'The entry.', schema: types.StateEntry } },
      problems: ['VERSION_MISMATCH', 'BODY_TOO_LARGE'],
      limits: { bodyBytes: bodyFor(limits.stateAttributesBytes + limits.stateKeyBytes) },
      example: {
        path: organization,
        body: { keyParts: ['user', '42'], attributes: { visits: 7 }, ttlInSec: 86400 },
        response: stateEntry,
      },
    },
    deleteState: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/state/delete',
      group: 'State',
      summary: 'Delete one entry',
      access: writer,
      parameters: { path: inOrganization },
      body: { schema: types.StateDeleteRequest },
      responses: { 204: { description: 'Gone, whether or not it was there.' } },
      example: { path: organization, body: { keyParts: ['user', '42'] } },
    },
    incrementState: {
      method: 'POST',
      path: '/v1/organization/{organizationName}/state/increment',
      group: 'State',
      summary: 'Add to a number in an entry',
      description: 'Atomic. The entry and the attribute are made when they are missing.',
      access: writer,
      parameters: { path: inOrganization },
      body: { schema: types.StateIncrementRequest },
      responses: { 200: { description: 'The entry.', schema: types.StateEntry } },
      problems: ['BODY_TOO_LARGE'],
      example: {
        path: organization,
        body: { keyParts: ['user', '42'], attribute: 'visits', by: 1 },
        response: stateEntry,
      },
    },
  });
}

import Type from 'typebox';
import type { Limits } from '../limits.ts';
import { PageToken, pageSize, strict, withoutNul } from '../names.ts';

function keyPart(limits: Limits) {
  return Type.String({ minLength: 1, maxLength: limits.stateKeyBytes, ...withoutNul });
}

function keyParts(limits: Limits) {
  return Type.Array(keyPart(limits), { minItems: 1, maxItems: limits.stateKeyParts });
}

const TimeToLive = Type.Integer({
  minimum: 1,
  maximum: 315_360_000,
  description: 'Seconds after which the entry is gone.',
});

export function stateKeyRequest(limits: Limits) {
  return strict({ keyParts: keyParts(limits) });
}

export function stateListRequest(limits: Limits) {
  return strict({
    keyPrefix: Type.Optional(
      Type.Array(keyPart(limits), { maxItems: limits.stateKeyParts, description: 'Whole leading parts.' }),
    ),
    cursor: Type.Optional(PageToken),
    limit: Type.Optional(pageSize(Math.min(50, limits.statePage), limits.statePage)),
  });
}

export function stateUpsertRequest(limits: Limits) {
  return strict({
    keyParts: keyParts(limits),
    attributes: Type.Record(Type.String(), Type.Unknown(), { description: 'Replaces all attributes.' }),
    ttlInSec: Type.Optional(TimeToLive),
    expectedVersion: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'The version the entry must have; 0 when it must not exist.',
      }),
    ),
  });
}

export function stateIncrementRequest(limits: Limits) {
  return strict({
    keyParts: keyParts(limits),
    attribute: Type.String({ minLength: 1, maxLength: 256 }),
    by: Type.Optional(Type.Number({ default: 1 })),
    ttlInSec: Type.Optional(TimeToLive),
  });
}

export const StateEntry = strict({
  keyParts: Type.Array(Type.String()),
  mergedKey: Type.String({
    description: 'The parts joined with `:`; `\\` and `:` inside a part are escaped.',
  }),
  attributes: Type.Record(Type.String(), Type.Unknown()),
  ttlInEpochSec: Type.Optional(
    Type.Union([Type.Integer(), Type.Null()], { description: 'When the entry expires, in epoch seconds.' }),
  ),
  version: Type.Integer({ description: 'One more for each change.' }),
});

export const StateListResponse = strict({
  entries: Type.Array(StateEntry),
  nextCursor: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});

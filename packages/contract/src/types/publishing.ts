import Type from 'typebox';
import { strict } from '../names.ts';

export const Published = strict({
  messageId: Type.String(),
  duplicate: Type.Boolean({
    description: 'A message with this id was accepted before; it is not accepted again.',
  }),
});

export const PublishedMany = strict({
  accepted: Type.Integer(),
  duplicates: Type.Integer(),
  rejected: Type.Integer(),
  errors: Type.Array(strict({ index: Type.Integer(), code: Type.String(), message: Type.String() })),
});

import { cursorSchema, limitSchema, uuidSchema } from '../schemas.ts';
import { IDEMPOTENCY_KEY, OLDER_LEAD } from './examples.ts';

export const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description: 'Your id for the lead, a UUID: the same in every repetition, a new one for other data.',
  schema: uuidSchema,
  example: IDEMPOTENCY_KEY,
};

export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the lead, a UUID in any letter case.',
  schema: uuidSchema,
  example: OLDER_LEAD.id,
};

export const limitParameter = {
  name: 'limit',
  in: 'query',
  description: 'The maximum number of leads on the page.',
  schema: limitSchema,
};

export const cursorParameter = {
  name: 'cursor',
  in: 'query',
  description: 'The `nextCursor` of the previous page, unchanged; without it, the first page is returned.',
  schema: cursorSchema,
};

export const requestIdParameter = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your id for the request: 1 to 128 letters, digits, dots, underscores and hyphens. Any other value is replaced by ' +
    'a new id.',
  schema: { type: 'string' },
};

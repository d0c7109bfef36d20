import { cursorSchema, limitSchema, uuidSchema } from '../schemas.ts';
import { IDEMPOTENCY_KEY, OLDER_LEAD } from './examples.ts';

export const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description: 'Your own id for the lead, a UUID: the same in every repetition, another one for other data.',
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
  description: 'How many leads the page may have.',
  schema: limitSchema,
};

export const cursorParameter = {
  name: 'cursor',
  in: 'query',
  description: 'The `nextCursor` of the page before, unchanged; without it the first page is answered.',
  schema: cursorSchema,
};

export const requestIdParameter = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your own name for the request. It is kept when it has 1 to 128 letters, digits, dots, underscores and hyphens; ' +
    'else the request gets a new one.',
  schema: { type: 'string' },
};

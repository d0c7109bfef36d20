import { STAGE_WORDS } from '../lead-json.ts';

/**
 * The shapes of the public API's bodies (JSON Schema). A request's schema settles shape alone: properties and types. The
 * rules for a field's value are the core's, and checked with the core's own functions.
 */
export const leadCaptureSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['displayName', 'contact'],
  properties: {
    displayName: { type: 'string' },
    contact: {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'value'],
      properties: { type: { type: 'string', enum: ['email', 'phone'] }, value: { type: 'string' } },
    },
    sourceId: { type: ['string', 'null'] },
    note: { type: ['string', 'null'] },
  },
} as const;

const leadSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'displayName', 'stage', 'sourceId', 'note', 'createdAt', 'updatedAt'],
  properties: {
    id: { type: 'string' },
    displayName: { type: 'string' },
    stage: { type: 'string', enum: STAGE_WORDS },
    sourceId: { type: ['string', 'null'] },
    note: { type: ['string', 'null'] },
    createdAt: { type: 'string' },
    updatedAt: { type: 'string' },
  },
} as const;

export const leadResponseSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['lead'],
  properties: { lead: leadSchema },
} as const;

export const leadListSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['leads', 'nextCursor'],
  properties: {
    leads: { type: 'array', items: leadSchema },
    nextCursor: { type: ['string', 'null'] },
  },
} as const;

import { BOUNDS, PAGE_SIZE } from '../common/rules/field-rules.ts';
import { STAGES } from '../common/rules/public-lead.ts';
import { PROBLEMS } from './problems.ts';

/**
 * The shapes of the public API (JSON Schema), each once: bodies of requests are checked with them, and the OpenAPI
 * document is made of them, which the tests hold every answer against.
 *
 * They say what every reader of JSON Schema understands alike, and what generators of clients make code of that works.
 * What remains is said by the rules of the core, which the gateway checks too: no half of a surrogate pair, no control
 * character beyond ASCII in an e-mail address, and at least 3 digits, of any script, in a phone number.
 */

const HEX = '[0-9a-fA-F]';

/** RFC 9562: versions 1 to 8 of the standard variant, the nil UUID and the max UUID. */
const UUID = `^(?:${HEX}{8}-${HEX}{4}-[1-8]${HEX}{3}-[89abAB]${HEX}{3}-${HEX}{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$`;

const NO_NUL = '^[^\\x00]*$';

/**
 * One @ with something on both sides; no white space, and no control character of ASCII. Those beyond ASCII are not named:
 * clients in PHP look at bytes, and would refuse every other letter with such a byte in it.
 */
const EMAIL = '^[^@\\s\\x00-\\x1f\\x7f]+@[^@\\s\\x00-\\x1f\\x7f]+$';

/** Without a format: clients in Python would run the pattern on an object, and could not read a single answer. */
export const uuidSchema = { type: 'string', pattern: UUID } as const;

const lengthOf = ({ min, max }: { readonly min: number; readonly max: number }) =>
  ({ minLength: min, maxLength: max, pattern: NO_NUL }) as const;

const displayNameSchema = {
  type: 'string',
  ...lengthOf(BOUNDS.displayName),
  description: 'Name of the person. Lengths count Unicode code points; text is kept and answered unchanged.',
} as const;

export const emailContactSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'value'],
  properties: {
    type: { type: 'string', const: 'email' },
    value: { type: 'string', maxLength: BOUNDS.email.max, pattern: EMAIL, description: 'E-mail address.' },
  },
} as const;

export const phoneContactSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'value'],
  properties: {
    type: { type: 'string', const: 'phone' },
    value: {
      type: 'string',
      ...lengthOf(BOUNDS.phone),
      description: 'Phone number as people type it, with at least 3 digits.',
    },
  },
} as const;

export const contactSchema = { oneOf: [emailContactSchema, phoneContactSchema] } as const;

// @rule 2.2.displayName 2.2.contact 2.2.sourceId 2.2.note 2.2.nothing-else
export const leadCaptureSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['displayName', 'contact'],
  properties: {
    displayName: displayNameSchema,
    contact: contactSchema,
    sourceId: {
      ...uuidSchema,
      type: ['string', 'null'],
      description: "An enabled lead source of the key's studio, a UUID; null, or left out: none.",
    },
    note: {
      type: ['string', 'null'],
      ...lengthOf(BOUNDS.note),
      description: 'What the visitor wrote, or what else there is to know; null, or left out: nothing.',
    },
  },
} as const;

/** Without a pattern: clients in Python would run it on an object. */
const timeSchema = { type: 'string', format: 'date-time' } as const;

export const leadStageSchema = {
  type: 'string',
  enum: STAGES,
  description: 'Where a lead stands; a new one is `new`.',
} as const;

export const leadSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'displayName', 'stage', 'sourceId', 'note', 'createdAt', 'updatedAt'],
  properties: {
    id: { ...uuidSchema, description: 'A UUID in lower case.' },
    displayName: displayNameSchema,
    stage: leadStageSchema,
    sourceId: { ...uuidSchema, type: ['string', 'null'], description: 'The lead source, a UUID; null: none.' },
    note: { type: ['string', 'null'] },
    createdAt: { ...timeSchema, description: 'When the lead was created; UTC, ending in Z.' },
    updatedAt: { ...timeSchema, description: 'When the lead was last changed; UTC, ending in Z.' },
  },
} as const;

// @rule 2.3.lead
export const leadResponseSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['lead'],
  properties: { lead: leadSchema },
} as const;

/** At most 100 leads: a page that asks for more is refused. */
export const limitSchema = {
  type: 'integer',
  minimum: 1,
  maximum: PAGE_SIZE.max,
  default: PAGE_SIZE.fallback,
} as const;

export const cursorSchema = {
  type: 'string',
  minLength: BOUNDS.pageToken.min,
  maxLength: BOUNDS.pageToken.max,
  pattern: '^[A-Za-z0-9_-]*$',
} as const;

export const leadListSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['leads', 'nextCursor'],
  properties: {
    leads: { type: 'array', maxItems: PAGE_SIZE.max, items: leadSchema },
    nextCursor: {
      ...cursorSchema,
      type: ['string', 'null'],
      description: 'Pass it unchanged as `cursor` to get the next page; null: there is none.',
    },
  },
} as const;

export const problemCodeSchema = {
  type: 'string',
  enum: Object.keys(PROBLEMS),
  description: 'What happened, for programs.',
} as const;

export const problemDetailsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'title', 'status', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri', description: 'Where this code is explained.' },
    title: { type: 'string', minLength: 1, description: 'What the code means; always the same.' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: problemCodeSchema,
    detail: { type: 'string', minLength: 1, description: 'What happened this time, for people.' },
    fields: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
      description: 'What is wrong, by header, parameter, or path into the body such as `contact.value`.',
    },
    requestId: { type: 'string', minLength: 1, maxLength: 128, description: 'The same as in `X-Request-Id`.' },
  },
} as const;

import { BOUNDS, CONTACT_TYPES, type ContactType, UUID_PATTERN } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE, STAGES } from '../../common/rules/public-api.ts';
import { PROBLEM_CODES } from '../problems.ts';

/** The paths of the list of leads and of one lead. @rule 9.version */
export const LEADS_PATH = '/v1/integrations/leads';
export const LEAD_PATH = `${LEADS_PATH}/:id`;

/**
 * The JSON Schemas of the public API. The gateway validates request bodies with them, and the OpenAPI document contains them. The tests
 * validate every response against that document.
 *
 * They use only features that all JSON Schema implementations interpret alike, and that client generators turn into working code. The
 * gateway also applies rules of the core that are missing here. A text has no lone surrogates. An email address has no control characters
 * beyond ASCII. A phone number has at least 3 digits, of any script.
 */

const NO_NUL = '^[^\\x00]*$';

/**
 * One @ with text on both sides, no white space and no ASCII control characters. Other control characters are left out: clients in PHP
 * match bytes, and would refuse letters that contain such a byte.
 */
const EMAIL = '^[^@\\s\\x00-\\x1f\\x7f]+@[^@\\s\\x00-\\x1f\\x7f]+$';

/** No format: clients in Python would apply the pattern to an object and fail on every response. */
export const uuidSchema = { type: 'string', pattern: UUID_PATTERN } as const;

const toLengthSchema = ({ min, max }: { readonly min: number; readonly max: number }) =>
  ({ minLength: min, maxLength: max, pattern: NO_NUL }) as const;

const displayNameSchema = {
  type: 'string',
  ...toLengthSchema(BOUNDS.displayName),
  description: 'Name of the person. Lengths count Unicode code points; text is stored and returned unchanged.',
} as const;

const CONTACT_VALUES: Readonly<Record<ContactType, object>> = {
  email: { maxLength: BOUNDS.email.max, pattern: EMAIL, description: 'Email address.' },
  phone: { ...toLengthSchema(BOUNDS.phone), description: 'Phone number as people type it, with at least 3 digits.' },
};

/** In the order of their types. */
export const contactSchemas = CONTACT_TYPES.map((type) => ({
  type: 'object',
  additionalProperties: false,
  required: ['type', 'value'],
  properties: { type: { type: 'string', const: type }, value: { type: 'string', ...CONTACT_VALUES[type] } },
}));

export const contactSchema = { oneOf: contactSchemas, description: 'An email address or a phone number.' };

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
      description: "The UUID of an enabled lead source of the key's studio; null or left out: none.",
    },
    note: {
      type: ['string', 'null'],
      ...toLengthSchema(BOUNDS.note),
      description: 'A message of the visitor, or other information; null or left out: none.',
    },
  },
} as const;

/** No pattern: clients in Python would apply it to an object. */
const timeSchema = { type: 'string', format: 'date-time' } as const;

export const leadStageSchema = {
  type: 'string',
  enum: STAGES,
  description: 'The stage of the lead; initially `new`.',
} as const;

export const leadSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'displayName', 'stage', 'sourceId', 'note', 'createdAt', 'updatedAt'],
  properties: {
    id: { ...uuidSchema, description: 'A UUID in lower case.' },
    displayName: displayNameSchema,
    stage: leadStageSchema,
    sourceId: { ...uuidSchema, type: ['string', 'null'], description: 'The UUID of the lead source; null: none.' },
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
      description: 'Pass it unchanged as `cursor` to get the next page; null on the last page.',
    },
  },
} as const;

export const problemCodeSchema = {
  type: 'string',
  enum: PROBLEM_CODES,
  description: 'The kind of problem, for programs.',
} as const;

export const problemDetailsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'title', 'status', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri', description: 'The address of the page about the code.' },
    title: { type: 'string', minLength: 1, description: 'The meaning of the code; always the same.' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: problemCodeSchema,
    detail: { type: 'string', minLength: 1, description: 'An explanation of this occurrence, for people.' },
    fields: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
      description: 'The faults, by header, parameter, or path into the body such as `contact.value`.',
    },
    requestId: { type: 'string', minLength: 1, maxLength: 128, description: 'The same as in `X-Request-Id`.' },
  },
} as const;

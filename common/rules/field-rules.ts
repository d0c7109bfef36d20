/**
 * The field rules of the contract, independent of the transport. The core checks every request with them. The gateway applies them first,
 * so that it can report header, path and body faults together.
 *
 * Lengths are in Unicode code points.
 */

/**
 * The fields that callers give when they create a lead, and can correct, in the order of the audit log and of exports. The rest of the code
 * derives from this list, BOUNDS and CAPTURE_RULES. A new field is an optional text.
 */
export const DATA_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;

/** The fields that are a single text. Only `displayName` is required. */
export const TEXT_FIELDS = DATA_FIELDS.filter((field) => field !== 'contact');
export type TextField = (typeof TEXT_FIELDS)[number];

/** The lengths of fields; code points. @rule 2.2.lengths 8.displayName 8.email 8.phone 8.note 8.cursor */
export const BOUNDS = {
  displayName: { min: 1, max: 160 },
  email: { min: 1, max: 254 },
  phone: { min: 5, max: 64 },
  note: { min: 1, max: 2000 },
  name: { min: 1, max: 160 },
  pageToken: { min: 1, max: 512 },
} as const;

/** The fault of a value, completing the sentence "The value …"; undefined if it is valid. */
export type Fault = string | undefined;

const HEX = '[0-9a-fA-F]';

/** RFC 9562: versions 1 to 8 of the standard variant, the nil UUID and the max UUID. */
export const UUID_PATTERN = `^(?:${HEX}{8}-${HEX}{4}-[1-8]${HEX}{3}-[89abAB]${HEX}{3}-${HEX}{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$`;
const UUID = new RegExp(UUID_PATTERN);
export const CRM_ID_PATTERN = '^[A-Za-z0-9_-]{1,64}$';
const CRM_ID = new RegExp(CRM_ID_PATTERN);

/** The form of the name of a feed consumer, and how many there may be. Each change is written once per consumer. */
export const CONSUMER_NAME_PATTERN = '^[a-z][a-z0-9-]{0,62}$';
export const MAX_CONSUMERS = 16;

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/** The ways to reach a person. Tables with an entry for each hold whatever depends on the type. */
export const CONTACT_TYPES = ['email', 'phone'] as const;
export type ContactType = (typeof CONTACT_TYPES)[number];

export const isContactType = (type: unknown): type is ContactType => CONTACT_TYPES.some((each) => each === type);

/** A text field of a creation. */
export type CaptureField = TextField | ContactType;

/** The pattern that a text must match. The fault says what is wrong if it does not, and clients get the code. */
type Rule = readonly [pattern: RegExp, fault: string, code: string];

/**
 * The rules of each text of a creation. A text's fault is the first rule that it breaks. `sdk/generate-rules.ts` translates the patterns
 * for the clients in all languages, which check with them before they thank a visitor.
 */
export const CAPTURE_RULES = {
  /** @rule 2.2.displayName */
  displayName: textRules(BOUNDS.displayName),
  /** The check is loose, so that no deliverable address is refused. @rule 2.2.email 2.2.email-form */
  email: [
    ...textRules(BOUNDS.email),
    [/^[^@]+@[^@]+$/, 'must have exactly one @ with something on both sides', 'no_email_address'],
    [/^[^\s\p{Cc}]*$/u, 'must not contain white space or control characters', 'has_white_space'],
  ],
  /** As people type it. @rule 2.2.phone 2.2.phone-form */
  phone: [...textRules(BOUNDS.phone), [/^(?:\P{Nd}*\p{Nd}){3}/u, 'must contain at least 3 digits', 'too_few_digits']],
  /** With hyphens, in any letter case. @rule 2.2.uuids 4.2.id */
  sourceId: [[UUID, 'must be a UUID with hyphens', 'no_uuid']],
  /** @rule 2.2.note */
  note: textRules(BOUNDS.note),
} as const satisfies Readonly<Record<CaptureField, readonly Rule[]>>;

const NAME_RULES = textRules(BOUNDS.name);

/** Returns what is wrong with a UUID; it needs hyphens, and any letter case is valid. */
export const uuidFault = (value: string): Fault => firstFault(CAPTURE_RULES.sourceId, value);

/** Returns whether a value is a UUID in lower case, the form in which all are stored. */
export const isCanonicalUuid = (value: unknown): value is string =>
  typeof value === 'string' && UUID.test(value) && value === value.toLowerCase();

/** Returns whether a value is an id that the CRM assigned to a studio or a member. */
export const isCrmId = (value: unknown): value is string => typeof value === 'string' && CRM_ID.test(value);

export const crmIdFault = (value: string): Fault =>
  isCrmId(value) ? undefined : 'must be 1 to 64 letters, digits, underscores or hyphens';

/** The form of a reason, a code that is never personal data. */
export const REASON_PATTERN = '^[A-Z][A-Z0-9_]{0,62}$';
const REASON = new RegExp(REASON_PATTERN);

export const reasonFault = (value: string): Fault =>
  REASON.test(value) ? undefined : 'must be 1 to 63 of A to Z, 0 to 9 and _, and begin with a letter';

export const captureFault = (field: CaptureField, value: string): Fault => firstFault(CAPTURE_RULES[field], value);

export const nameFault = (value: string): Fault => firstFault(NAME_RULES, value);

/** Checks the form of a page token. Only the core can tell whether it is genuine. @rule 4.3.cursor 8.cursor */
export function pageTokenFault(value: string): Fault {
  const { min, max } = BOUNDS.pageToken;
  if (!BASE64URL.test(value)) return 'must contain only letters, digits, underscores and hyphens';
  return value.length < min || value.length > max ? `must be ${min} to ${max} characters long` : undefined;
}

const firstFault = (rules: readonly Rule[], value: string): Fault =>
  rules.find(([pattern]) => !pattern.test(value))?.[1];

// @rule 2.2.lengths 2.2.unicode
function textRules({ min, max }: { readonly min: number; readonly max: number }): readonly Rule[] {
  return [
    // A database would store something other than what was sent, or cut the text.
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
    [/^[^\0]*$/, 'must not contain the NUL character', 'malformed'],
    [new RegExp(`^[\\s\\S]{${min},${max}}$`, 'u'), `must be ${min} to ${max} characters long`, 'wrong_length'],
  ];
}

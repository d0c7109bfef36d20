/**
 * The field rules of the contract, independent of the transport. The core checks every request with them; the gateway
 * applies them first, so that it can report header, path and body faults together.
 *
 * Lengths are in Unicode code points.
 */

/** The lengths of fields; code points. @rule 2.2.lengths 8.displayName 8.email 8.phone 8.note 8.cursor */
export const BOUNDS = {
  displayName: { min: 1, max: 160 },
  email: { min: 1, max: 254 },
  phone: { min: 5, max: 64 },
  note: { min: 1, max: 2000 },
  name: { min: 1, max: 160 },
  pageToken: { min: 1, max: 512 },
} as const;

/** Leads per page: the maximum, and the default. @rule 8.limit 8.leads */
export const PAGE_SIZE = { max: 100, fallback: 25 } as const;

/** What is wrong with a value, as the end of the sentence "The value …"; undefined: it is valid. */
export type Fault = string | undefined;

// RFC 9562: versions 1 to 8 of the standard variant, the nil UUID and the max UUID.
const UUID =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/i;
const CANONICAL_UUID = new RegExp(UUID.source);
export const CRM_ID_PATTERN = '^[A-Za-z0-9_-]{1,64}$';
const CRM_ID = new RegExp(CRM_ID_PATTERN);
const BASE64URL = /^[A-Za-z0-9_-]*$/;
const WHITE_SPACE_OR_CONTROL = /[\s\p{Cc}]/u;
const DECIMAL_DIGIT = /\p{Nd}/gu;

/** A UUID with hyphens, in any letter case. @rule 2.2.uuids 4.2.id */
export const uuidFault = (value: string): Fault => (UUID.test(value) ? undefined : 'must be a UUID with hyphens');

/** Whether a text is a UUID in lower case, the form in which all are stored. */
export const isCanonicalUuid = (value: string): boolean => CANONICAL_UUID.test(value);

/** An id assigned by the CRM, of a studio or a member. */
export const crmIdFault = (value: string): Fault =>
  CRM_ID.test(value) ? undefined : 'must be 1 to 64 letters, digits, underscores or hyphens';

/** The name of a person. @rule 2.2.displayName */
export const displayNameFault = (value: string): Fault => textFault(value, BOUNDS.displayName);

/** The free text about a lead. @rule 2.2.note */
export const noteFault = (value: string): Fault => textFault(value, BOUNDS.note);

/** The name of a key or a source. */
export const nameFault = (value: string): Fault => textFault(value, BOUNDS.name);

/**
 * An e-mail address. The check is loose, so that no deliverable address is refused.
 *
 * @rule 2.2.email 2.2.email-form
 */
export function emailFault(value: string): Fault {
  const fault = textFault(value, BOUNDS.email);
  if (fault) return fault;
  const [local, domain, ...more] = value.split('@');
  if (!local || !domain || more.length > 0) return 'must have exactly one @ with something on both sides';
  return WHITE_SPACE_OR_CONTROL.test(value) ? 'must not contain white space or control characters' : undefined;
}

/** A phone number as people type it. @rule 2.2.phone 2.2.phone-form */
export function phoneFault(value: string): Fault {
  const fault = textFault(value, BOUNDS.phone);
  if (fault) return fault;
  return (value.match(DECIMAL_DIGIT)?.length ?? 0) < 3 ? 'must contain at least 3 digits' : undefined;
}

/** The form of a page token; only the core can tell whether it is genuine. @rule 4.3.cursor 8.cursor */
export function pageTokenFault(value: string): Fault {
  const { min, max } = BOUNDS.pageToken;
  if (!BASE64URL.test(value)) return 'must contain only letters, digits, underscores and hyphens';
  return value.length < min || value.length > max ? `must be ${min} to ${max} characters long` : undefined;
}

// @rule 2.2.lengths 2.2.unicode
function textFault(value: string, { min, max }: { readonly min: number; readonly max: number }): Fault {
  // A database would store something else than was sent, or cut the text.
  if (!value.isWellFormed()) return 'must be well-formed Unicode (it contains half of a surrogate pair)';
  if (value.includes('\0')) return 'must not contain the NUL character';
  const length = codePointLength(value);
  return length < min || length > max ? `must be ${min} to ${max} characters long` : undefined;
}

function codePointLength(value: string): number {
  let length = 0;
  for (const _ of value) length += 1;
  return length;
}

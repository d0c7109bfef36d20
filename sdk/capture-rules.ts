// Generated from common/rules/field-rules.ts. Do not edit.

/** The code of a fault in a lead, from which a page in another language finds its own words. */
export type FaultCode =
  | 'malformed'
  | 'wrong_length'
  | 'not_visible'
  | 'no_email_address'
  | 'has_white_space'
  | 'too_few_digits'
  | 'no_uuid'
  | 'not_text'
  | 'no_contact_type'
  | 'unknown_property';

/** A pattern, with the message and the code for a text that does not match it. */
export type Rule = readonly [pattern: RegExp, fault: string, code: FaultCode];

/** The patterns that the texts of a creation must match, with the message and the code for a text that does not. */
export const CAPTURE_RULES: Readonly<Record<string, readonly Rule[]>> = {
  displayName: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
    [/^[^\0]*$/, 'must not contain the NUL character', 'malformed'],
    [/^[\s\S]{1,160}$/u, 'must be 1 to 160 characters long', 'wrong_length'],
    [/^[\s\S]*[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u, 'must have a visible character', 'not_visible'],
  ],
  email: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
    [/^[^\0]*$/, 'must not contain the NUL character', 'malformed'],
    [/^[\s\S]{1,254}$/u, 'must be 1 to 254 characters long', 'wrong_length'],
    [/^[^@]+@[^@]+$/, 'must have exactly one @ with something on both sides', 'no_email_address'],
    [/^[^\s\p{Cc}]*$/u, 'must not contain white space or control characters', 'has_white_space'],
  ],
  phone: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
    [/^[^\0]*$/, 'must not contain the NUL character', 'malformed'],
    [/^[\s\S]{5,64}$/u, 'must be 5 to 64 characters long', 'wrong_length'],
    [/^(?:\P{Nd}*\p{Nd}){3}/u, 'must contain at least 3 digits', 'too_few_digits'],
  ],
  sourceId: [
    [
      /^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$/,
      'must be a UUID with hyphens',
      'no_uuid',
    ],
  ],
  note: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
    [/^[^\0]*$/, 'must not contain the NUL character', 'malformed'],
    [/^[\s\S]{1,2000}$/u, 'must be 1 to 2000 characters long', 'wrong_length'],
  ],
};

/** The texts of a creation that may be null, left out or blank. */
export const OPTIONAL_TEXTS = ['sourceId', 'note'] as const;

// Generated from common/rules/field-rules.ts. Do not edit.

/** A pattern, and what is wrong with a text that does not match it. */
export type Rule = readonly [pattern: RegExp, fault: string];

/** What each text of a creation must match, and what is wrong with one that does not. */
export const CAPTURE_RULES: Readonly<Record<string, readonly Rule[]>> = {
  displayName: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)'],
    [/^[^\0]*$/, 'must not contain the NUL character'],
    [/^[\s\S]{1,160}$/u, 'must be 1 to 160 characters long'],
  ],
  email: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)'],
    [/^[^\0]*$/, 'must not contain the NUL character'],
    [/^[\s\S]{1,254}$/u, 'must be 1 to 254 characters long'],
    [/^[^@]+@[^@]+$/, 'must have exactly one @ with something on both sides'],
    [/^[^\s\p{Cc}]*$/u, 'must not contain white space or control characters'],
  ],
  phone: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)'],
    [/^[^\0]*$/, 'must not contain the NUL character'],
    [/^[\s\S]{5,64}$/u, 'must be 5 to 64 characters long'],
    [/^(?:\P{Nd}*\p{Nd}){3}/u, 'must contain at least 3 digits'],
  ],
  sourceId: [
    [
      /^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$/,
      'must be a UUID with hyphens',
    ],
  ],
  note: [
    [/^\P{Cs}*$/u, 'must be well-formed Unicode (it contains half of a surrogate pair)'],
    [/^[^\0]*$/, 'must not contain the NUL character'],
    [/^[\s\S]{1,2000}$/u, 'must be 1 to 2000 characters long'],
  ],
};

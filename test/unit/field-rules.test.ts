import { describe, expect, test } from 'vitest';
import {
  BOUNDS,
  contactFault,
  crmIdFault,
  displayNameFault,
  type Fault,
  nameFault,
  noteFault,
  PAGE_SIZE,
  pageTokenFault,
  uuidFault,
} from '../../common/rules/field-rules.ts';

type Rule = (value: string) => Fault;
const emailFault: Rule = (value) => contactFault('email', value);
const phoneFault: Rule = (value) => contactFault('phone', value);

const expectValid = (rule: Rule, value: string) => expect(rule(value)).toBeUndefined();
const expectFault = (rule: Rule, value: string, about: RegExp = /./) => expect(rule(value)).toMatch(about);

describe('bounds', () => {
  test('are those of the contract', () => {
    expect(BOUNDS).toEqual({
      displayName: { min: 1, max: 160 },
      email: { min: 1, max: 254 },
      phone: { min: 5, max: 64 },
      note: { min: 1, max: 2000 },
      name: { min: 1, max: 160 },
      pageToken: { min: 1, max: 512 },
    });
    expect(PAGE_SIZE).toEqual({ max: 100, fallback: 25 });
  });
});

/** The text fields with their bounds, and how to make a valid text of a length. */
const texts: {
  field: string;
  rule: Rule;
  min: number;
  max: number;
  ofLength: (length: number, filler: string) => string;
}[] = [
  {
    field: 'displayName',
    rule: displayNameFault,
    min: 1,
    max: 160,
    ofLength: (length, filler) => filler.repeat(length),
  },
  { field: 'note', rule: noteFault, min: 1, max: 2000, ofLength: (length, filler) => filler.repeat(length) },
  { field: 'name', rule: nameFault, min: 1, max: 160, ofLength: (length, filler) => filler.repeat(length) },
  {
    field: 'phone',
    rule: phoneFault,
    min: 5,
    max: 64,
    ofLength: (length, filler) => `123${filler.repeat(length - 3)}`,
  },
  {
    field: 'email',
    rule: emailFault,
    min: 3,
    max: 254,
    ofLength: (length, filler) => `${filler}@${filler.repeat(length - 2)}`,
  },
];

describe.each(texts)('$field', ({ rule, min, max, ofLength }) => {
  test.each(['a', '7', 'é', '語', '🦉', '\u{10ffff}'])(
    'counts code points: %s',
    { tags: ['2.2.lengths'] },
    (filler) => {
      expectValid(rule, ofLength(min, filler));
      expectValid(rule, ofLength(min + 1, filler));
      expectValid(rule, ofLength(max - 1, filler));
      expectValid(rule, ofLength(max, filler));
      expectFault(rule, ofLength(max + 1, filler), new RegExp(` to ${max} characters long$`));
    },
  );

  test('refuses fewer characters than its bound', () => {
    expectFault(rule, ofLength(min, '7').slice(1));
    expectFault(rule, '');
  });

  test('refuses NUL at any position', () => {
    const valid = ofLength(10, '7');
    for (const at of [0, 5, 10]) expectFault(rule, `${valid.slice(0, at)}\0${valid.slice(at)}`, /NUL/);
  });

  test.each(['\ud83e', '\udd89', '\udd89\ud83e', '\ud83e\ud83e\udd89'])(
    'refuses half of a surrogate pair: %j',
    (half) => {
      const valid = ofLength(10, '7');
      for (const at of [0, 5, 10]) expectFault(rule, valid.slice(0, at) + half + valid.slice(at), /surrogate/);
    },
  );
});

describe('displayName, note and name', () => {
  test.each([' ', '\n', 'é', '\u200f', '\u0001', '\ufeff', '\ufffd', 'a\nb'])('accept any other text: %j', (text) => {
    for (const rule of [displayNameFault, noteFault, nameFault]) expectValid(rule, text);
  });
});

describe('email', () => {
  test.each([
    'a@b',
    'a.b+c@example.org',
    '"quoted"@example.org',
    `${'l'.repeat(65)}@example.org`,
    'köln@bücher.example',
    '用户@例子.广告',
    'a@[192.0.2.1]',
    'a..b@-',
    '👩‍🚀@example.org',
  ])('accepts %s', (value) => expectValid(emailFault, value));

  test.each(['a', '@', 'a@', '@b', 'a@b@c', 'a@@b', '@a@b', 'a@b@'])('refuses %s', (value) => {
    expectFault(emailFault, value, /one @ with something on both sides/);
  });

  test.each([
    ' a@b',
    'a@b ',
    'a b@c',
    'a@b\n',
    '\ta@b',
    'a@b\r\n',
    'a\u00a0@b',
    'a\u2028@b',
    'a\u3000@b',
    'a\ufeff@b',
    'a\u0001@b',
    'a\u007f@b',
    'a\u0085@b',
    'a\u009f@b',
  ])('refuses white space and control characters: %j', { tags: ['2.2.email-form'] }, (value) => {
    expectFault(emailFault, value, /white space or control/);
  });
});

describe('phone', () => {
  test.each(['112 -', '+49 30 1234567', 'ext. 123', '١٢٣--', '１２３－４', '𝟏𝟐𝟑xx', '1٢३ab', 'call 1-800'])(
    'accepts %s',
    (value) => {
      expectValid(phoneFault, value);
    },
  );

  test.each(['12---', 'abcde', '+ + + +', '٠١---', '²³¹¼½', 'ⅧⅨⅩⅪ一', '一二三四五'])(
    'refuses fewer than 3 decimal digits: %s',
    { tags: ['2.2.phone-form'] },
    (value) => {
      expectFault(phoneFault, value, /at least 3 digits/);
    },
  );
});

describe('uuid', () => {
  const uuid = (version: string, variant: string) => `01234567-89ab-${version}def-${variant}123-456789abcdef`;
  const hex = [...'0123456789abcdef'];

  test.each(hex)('accepts version %s exactly as the contract does', (version) => {
    for (const variant of hex) {
      const known = '12345678'.includes(version) && '89ab'.includes(variant);
      for (const value of [uuid(version, variant), uuid(version, variant).toUpperCase()]) {
        if (known) expectValid(uuidFault, value);
        else expectFault(uuidFault, value);
      }
    }
  });

  test.each([
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
    'fFfFfFfF-FfFf-fFfF-FfFf-fFfFfFfFfFfF',
    '01234567-89AB-7cde-8F01-23456789abCD',
  ])('accepts %s', (value) => expectValid(uuidFault, value));

  const valid = uuid('4', '8');
  test.each([
    '',
    valid.replaceAll('-', ''),
    `{${valid}}`,
    `urn:uuid:${valid}`,
    ` ${valid}`,
    `${valid}\n`,
    `${valid}0`,
    valid.slice(1),
    valid.replace('a', 'g'),
    valid.replace('0', '٠'),
    valid.replace('-', '\u2010'),
    '00000000-0000-0000-0000-000000000001',
    'ffffffff-ffff-ffff-ffff-fffffffffffe',
    `${valid}\n${valid}`,
  ])('refuses %j', (value) => expectFault(uuidFault, value));
});

describe("the CRM's ids", () => {
  test.each(['a', 'A', '0', '_', '-', 'a'.repeat(63), 'a'.repeat(64), 'studio_1-B'])('accepts %s', (value) => {
    expectValid(crmIdFault, value);
  });

  test.each(['', 'a'.repeat(65), 'a b', 'a.b', 'ä', '٣', 'a\n', '\na', 'a/b', 'a\0', '🦉'])('refuses %j', (value) => {
    expectFault(crmIdFault, value);
  });
});

describe('page tokens', () => {
  test.each(['a', 'Az09_-', 'a'.repeat(511), 'a'.repeat(512)])('accepts %s', { tags: ['8.cursor'] }, (value) =>
    expectValid(pageTokenFault, value),
  );

  test.each(['', 'a'.repeat(513), 'a=', 'a+', 'a/', 'ä', 'a\n', ' a', 'a b'])(
    'refuses %j',
    { tags: ['8.cursor'] },
    (value) => {
      expectFault(pageTokenFault, value);
    },
  );
});

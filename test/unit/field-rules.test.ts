import { describe, expect, test } from 'vitest';
import {
  BOUNDS,
  type CaptureField,
  captureFault,
  crmIdFault,
  type Fault,
  nameFault,
  pageTokenFault,
  uuidFault,
} from '../../common/rules/field-rules.ts';

type Rule = (value: string) => Fault;
const ruleFor = (field: CaptureField): Rule => captureFault.bind(null, field);

/** The text fields with their bounds, and the start of a valid text. */
const TEXTS: readonly [field: string, rule: Rule, min: number, max: number, start: string][] = [
  ['displayName', ruleFor('displayName'), 1, 160, ''],
  ['note', ruleFor('note'), 1, 2000, ''],
  ['name', nameFault, 1, 160, ''],
  ['phone', ruleFor('phone'), 5, 64, '123'],
  ['email', ruleFor('email'), 3, 254, 'a@'],
];

test('every text with bounds is tested at them', () => {
  expect([...TEXTS.map(([field]) => field), 'pageToken'].toSorted()).toEqual(Object.keys(BOUNDS).toSorted());
});

describe.each(TEXTS)('%s', (_, rule, min, max, start) => {
  const makeText = (length: number, filler = '7') => start + filler.repeat(length - start.length);

  test('the length of a text field counts code points', { tags: ['2.2.lengths'] }, () => {
    for (const filler of ['a', '語', '🦉', '\u{10ffff}']) {
      for (const length of [min, max]) expect(rule(makeText(length, filler))).toBeUndefined();
      expect(rule(makeText(max + 1, filler))).toMatch(new RegExp(` to ${max} characters long$`));
    }
    expect(rule(makeText(min).slice(1))).toBeDefined();
  });

  test('a text field refuses NUL and unpaired surrogates at any position', () => {
    for (const at of [0, 5, 10]) {
      const withText = (text: string) => makeText(10).slice(0, at) + text + makeText(10).slice(at);
      expect(rule(withText('\0'))).toMatch(/NUL/);
      for (const half of ['\ud83e', '\udd89\ud83e']) expect(rule(withText(half))).toMatch(/surrogate/);
    }
  });
});

const UUID = '01234567-89ab-4def-8123-456789abcdef';
const HEX = [...'0123456789abcdef'];
const makeUuid = (version: string, variant: string) => `01234567-89ab-${version}def-${variant}123-456789abcdef`;
const isKnown = (version: string, variant: string) => '12345678'.includes(version) && '89ab'.includes(variant);
const uuids = HEX.flatMap((version) => HEX.map((variant) => [version, variant] as const));

/** Values that each rule accepts or refuses. `test/unit/schemas.test.ts` compares the rules with the document. */
const VALUES: readonly [what: string, rule: Rule, accepted: readonly string[], refused: readonly string[]][] = [
  ['a note', ruleFor('note'), [' ', '\n', '\u200f', '\u0001', '\ufeff', '\ufffd'], []],
  [
    'an email address',
    ruleFor('email'),
    ['a@b', '"quoted"@example.org', `${'l'.repeat(65)}@example.org`, '用户@例子.广告', 'a@[192.0.2.1]', 'a..b@-'],
    ['abc', '@ab', 'ab@', 'a@b@c'],
  ],
  ['a phone number', ruleFor('phone'), ['112 -', '١٢٣--', '𝟏𝟐𝟑xx', '1٢३ab'], ['12---', 'abcde', '²³¹¼½', '一二三四五']],
  [
    'a UUID',
    uuidFault,
    [
      ...uuids.flatMap(([version, variant]) => (isKnown(version, variant) ? makeUuid(version, variant) : [])),
      UUID.toUpperCase(),
      '00000000-0000-0000-0000-000000000000',
      'fFfFfFfF-FfFf-fFfF-FfFf-fFfFfFfFfFfF',
    ],
    [
      ...uuids.flatMap(([version, variant]) => (isKnown(version, variant) ? [] : makeUuid(version, variant))),
      ...['', UUID.replaceAll('-', ''), `{${UUID}}`, `urn:uuid:${UUID}`, ` ${UUID}`, `${UUID}\n`, `${UUID}0`],
      ...[UUID.replace('a', 'g'), UUID.replace('0', '٠'), '00000000-0000-0000-0000-000000000001'],
    ],
  ],
  [
    'an id of the CRM',
    crmIdFault,
    ['a', '_', '-', 'a'.repeat(64)],
    ['', 'a'.repeat(65), 'a b', 'a.b', 'ä', '٣', 'a\n', 'a/b', 'a\0'],
  ],
];

test.each(VALUES)('%s is checked as in the contract', { tags: ['2.2.phone-form'] }, (_, rule, accepted, refused) => {
  expect(accepted.filter((value) => rule(value) !== undefined)).toEqual([]);
  expect(refused.filter((value) => rule(value) === undefined)).toEqual([]);
});

test('an email address has no white space or control character', { tags: ['2.2.email-form'] }, () => {
  for (const character of [...' \t\n\u00a0\u2028\u3000\ufeff\u0001\u007f\u0085']) {
    for (const value of [`${character}a@b`, `a${character}@b`, `a@b${character}`]) {
      expect(captureFault('email', value), JSON.stringify(value)).toMatch(/white space or control/);
    }
  }
});

test('a page token has 1 to 512 characters of base64url', { tags: ['8.cursor'] }, () => {
  for (const token of ['a', 'Az09_-', 'a'.repeat(512)]) expect(pageTokenFault(token)).toBeUndefined();
  for (const token of ['', 'a'.repeat(513), 'a=', 'a+', 'a/', 'ä', 'a\n', ' a']) {
    expect(pageTokenFault(token), JSON.stringify(token)).toBeDefined();
  }
});

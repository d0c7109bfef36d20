import { describe, expect, test } from 'vitest';
import { openClaims } from '../../src/domain/claims.ts';
import { type Contact, contactForm, isRegionCode, type RegionCode } from '../../src/domain/contact.ts';

const email = (value: string): Contact => ({ type: 'email', value });
const phone = (value: string): Contact => ({ type: 'phone', value });
const normalisePhone = (typed: string, region: RegionCode | null) => contactForm(phone(typed), region);
const contactKey = (contact: Contact, regionCode: RegionCode | null) =>
  openClaims(contact, { regionCode }).contactKeys[0];

describe('phone numbers', () => {
  test.each<[typed: string, region: RegionCode | null, normalised: string]>([
    // With a country code, the region is ignored.
    ['+49 30 1234567', null, '+49301234567'],
    ['+49 30 1234567', 'US', '+49301234567'],
    ['+49 (0)30 123 45 67', null, '+49301234567'],
    ['0049 30 1234567', null, '+49301234567'],
    ['0049 30 1234567', 'DE', '+49301234567'],
    ['(0049) 30 / 1234567', null, '+49301234567'],
    ['011 49 30 1234567', 'US', '+49301234567'],
    ['+4930-1234567', null, '+49301234567'],
    ['tel:+49-30-1234567', null, '+49301234567'],
    ['Tel.: +49 30 1234567', null, '+49301234567'],
    ['(+49) 30 1234567', null, '+49301234567'],
    ['\u202a+49 30 1234567\u202c', null, '+49301234567'],
    ['+39 06 12345678', null, '+390612345678'],
    // Without one, the number is of the region.
    ['030 1234567', 'DE', '+49301234567'],
    ['(030) 123-45-67', 'DE', '+49301234567'],
    ['030.1234567', 'DE', '+49301234567'],
    ['06 12345678', 'IT', '+390612345678'],
    ['212-555-0123', 'US', '+12125550123'],
    ['1 (212) 555-0123', 'US', '+12125550123'],
    // Without a region: the digits.
    ['030 1234567', null, '0301234567'],
    ['030/123-4567', null, '0301234567'],
    ['1234567', null, '1234567'],
    // Extensions count in the comparison.
    ['+49 30 1234567 ext. 12', null, '+49301234567;ext=12'],
    ['030 1234567 x12', 'DE', '+49301234567;ext=12'],
    ['030 1234567 x13', 'DE', '+49301234567;ext=13'],
    ['tel:+49-30-1234567;ext=12', null, '+49301234567;ext=12'],
    // Letters and no possible number: the text without separators.
    ['1-800-FLOWERS', 'US', '1800flowers'],
    ['1-800-CONTACTS', 'US', '1800contacts'],
    ['1-800-CONTACTS', 'DE', '1800contacts'],
    ['030 1234567 (office)', 'DE', '+49301234567'],
    ['+49 30 1234567 Anna', null, '+49301234567'],
    ['089 12345 Anna', 'DE', '+498912345'],
    ['0800 REIFEN', 'DE', '0800reifen'],
    ['0800-REIFEN', 'DE', '0800reifen'],
    ['1 800 FLOWERS', 'AT', '1800flowers'],
    ['01805 TAXI', 'DE', '01805taxi'],
    ['+49 800 REIFEN', null, '+49800reifen'],
    ['1 (800) Contacts', null, '1800contacts'],
    ['＋1-800-CONTACTS', null, '+1800contacts'],
    ['Ext. x200', null, 'extx200'],
    ['x100', 'DE', 'x100'],
    ['доб. ١٢٣٤', null, 'доб1234'],
    // Digits of other scripts, and the full-width plus.
    ['٠٣٠ ١٢٣٤٥٦٧', 'DE', '+49301234567'],
    ['+٤٩٣٠١٢٣٤٥٦٧', null, '+49301234567'],
    ['۰۳۰ ۱۲۳۴۵۶۷', 'DE', '+49301234567'],
    ['०३० १२३४५६७', 'DE', '+49301234567'],
    ['０３０ １２３４５６７', 'DE', '+49301234567'],
    ['＋４９ ３０ １２３４５６７', null, '+49301234567'],
    ['𝟎𝟑𝟎 𝟏𝟐𝟑𝟒𝟓𝟔𝟕', 'DE', '+49301234567'],
    ['𝟘𝟛𝟘 𝟣𝟤𝟥𝟺𝟻𝟼𝟽', 'DE', '+49301234567'],
    ['0٣० １𝟐3', null, '030123'],
    // Impossible numbers: the digits and the plus.
    ['+999 123 456 789', null, '+999123456789'],
    ['00999 123 456 789', null, '+999123456789'],
    ['+1 23', null, '+123'],
    ['555-0123', 'US', '5550123'],
    ['9'.repeat(64), 'DE', '9'.repeat(64)],
    ['112 (now!)', null, '112now'],
    ['112 (!)', null, '112'],
  ])('%s in %s is %s', (typed, region, normalised) => {
    expect(normalisePhone(typed, region)).toBe(normalised);
  });

  test('the decimal digits of every script are equal to those of ASCII', () => {
    const digits = Array.from({ length: 0x110000 }, (_, codePoint) => codePoint)
      .filter((codePoint) => codePoint < 0xd800 || codePoint > 0xdfff)
      .map((codePoint) => String.fromCodePoint(codePoint))
      .filter((character) => /\p{Nd}/u.test(character));

    // Unicode assigns them in runs from zero to nine.
    const read = digits.map((digit) => normalisePhone(`1${digit}1`, null));

    expect(digits.length % 10).toBe(0);
    expect(digits.length).toBeGreaterThan(600);
    expect(read).toEqual(digits.map((_, index) => `1${index % 10}1`));
  });

  test.each([
    ';phone-context=',
    '030 1234567;phone-context=+49',
    '030 1234567;phone-context=;;',
    ';isub=1',
    '+',
    '+++',
    '000',
    'x',
  ])('any text can be compared: %s', (text) => {
    for (const region of ['DE', 'US', null] as const) expect(typeof normalisePhone(text, region)).toBe('string');
  });
});

describe('contacts are the same', () => {
  test.each<[string, string]>([
    ['ada@example.org', 'ADA@Example.ORG'],
    ['jürgen@example.org', 'JÜRGEN@example.org'],
    ['ΟΔΥΣΣΕΥΣ@example.org', 'οδυσσευσ@example.org'],
    ['straße@example.org', 'STRAẞE@example.org'],
    ['kim@example.org', '\u212aim@example.org'],
    ['İ@example.org', 'i@example.org'],
    ['𐐀@example.org', '𐐨@example.org'],
  ])('when email addresses differ in letter case only: %s, %s', (a, b) => {
    expect(contactKey(email(a), null)).toBe(contactKey(email(b), 'DE'));
  });
});

describe('contacts are different', () => {
  test.each<[Contact, Contact]>([
    [email('a@example.org'), email('b@example.org')],
    [email('a@example.org'), email('a@example.com')],
    [email('a.b@example.org'), email('ab@example.org')],
    [email('a+b@example.org'), email('a@example.org')],
    [phone('+49 30 1234567'), phone('+49 30 1234568')],
    [phone('030 1234567'), phone('+49 30 1234567')],
    [email('12345@'), phone('12345@')],
    [email('straße@example.org'), email('strasse@example.org')],
    [email('ı@example.org'), email('i@example.org')],
    [email('ς@example.org'), email('σ@example.org')],
    [email('ﬁn@example.org'), email('fin@example.org')],
    [phone('1-800-CONTACTS'), phone('1-800-FLOWERS')],
    [phone('030 1234567 x100'), phone('030 1234567 x200')],
  ])('%o, %o', (a, b) => {
    expect(contactKey(a, null)).not.toBe(contactKey(b, null));
  });
});

describe('the key of a contact', () => {
  test('is a hash that never changes, because open leads are found by it', () => {
    expect(contactKey(email('Ada@Example.org'), null)).toBe('bLP1Z-HDzzAqVsriqO_SCQ6ujK8_UQwGy90GqZ97oyU');
    expect(contactKey(phone('+49 30 1234567'), null)).toBe('1bVM1MkIr1ZMlGLQ6XVTQjkzv-mDSW5_zGmUiERzqNM');
  });
});

describe('a region', () => {
  test.each(['DE', 'US', 'IT', 'GB', 'XK'])('accepts %s', (code) => expect(isRegionCode(code)).toBe(true));

  test.each(['', 'de', 'XX', 'DEU', '001', '49', 'D', 'DE ', 'constructor', '__proto__', 'toString'])(
    'refuses %j',
    (code) => {
      expect(isRegionCode(code)).toBe(false);
    },
  );
});

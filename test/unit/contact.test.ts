import { describe, expect, test } from 'vitest';
import { type Contact, hashedTextsOf11, isRegionCode, type RegionCode } from '../../src/domain/contact.ts';

describe('the keys of release 1.1', () => {
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
  ])('are computed as there: %s in %s is %s', (typed, region, form) => {
    expect(hashedTextsOf11({ type: 'phone', value: typed }, region)[0]).toBe(`phone:${form}`);
  });

  test('of a number without a country code include the text, of others they do not', () => {
    const textsOf = (contact: Contact) => hashedTextsOf11(contact, 'DE');
    expect(textsOf({ type: 'phone', value: '030 1234567' })).toEqual(['phone:+49301234567', 'text:phone:030 1234567']);
    expect(textsOf({ type: 'phone', value: '+49 30 1234567' })).toEqual(['phone:+49301234567']);
    expect(textsOf({ type: 'email', value: 'STRA\u1e9eE@x.de' })).toEqual(['email:straße@x.de']);
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

import { describe, expect, test } from 'vitest';
import { type Contact, hashedTextsOf11, isRegionCode, type RegionCode } from '../../src/domain/contact.ts';

describe('the keys of release 1.1', () => {
  test.each<[typed: string, region: RegionCode | null, normalised: string]>([
    // With a country code, the region is ignored.
    ['+49 (0)30 123 45 67', 'US', '+49301234567'],
    ['011 49 30 1234567', 'US', '+49301234567'],
    ['Tel.: +49 30 1234567', null, '+49301234567'],
    // Without one, the number is of the region.
    ['(030) 123-45-67', 'DE', '+49301234567'],
    ['06 12345678', 'IT', '+390612345678'],
    // Without a region: the digits.
    ['030/123-4567', null, '0301234567'],
    // Extensions count in the comparison.
    ['030 1234567 x12', 'DE', '+49301234567;ext=12'],
    // Letters and no possible number: the text without separators.
    ['1-800-FLOWERS', 'US', '1800flowers'],
    ['030 1234567 (office)', 'DE', '+49301234567'],
    ['0800-REIFEN', 'DE', '0800reifen'],
    ['+49 800 REIFEN', null, '+49800reifen'],
    ['x100', 'DE', 'x100'],
    // Digits of other scripts, and the full-width plus.
    ['٠٣٠ ١٢٣٤٥٦٧', 'DE', '+49301234567'],
    ['＋４９ ３０ １２３４５６７', null, '+49301234567'],
    ['0٣० １𝟐3', null, '030123'],
    // Impossible numbers: the digits and the plus.
    ['00999 123 456 789', null, '+999123456789'],
    ['112 (now!)', null, '112now'],
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

test('a region is a code of ISO 3166, or XK', () => {
  for (const code of ['DE', 'US', 'XK']) expect(isRegionCode(code), code).toBe(true);
  for (const code of ['', 'de', 'XX', 'DEU', '49', 'DE ', '__proto__']) expect(isRegionCode(code), code).toBe(false);
});

import { hash } from 'node:crypto';
import { type CountryCode, isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js';

/** How to reach a person, as it was typed. */
export interface Contact {
  readonly type: 'email' | 'phone';
  readonly value: string;
}

/** Two capital letters of ISO 3166-1 that the phone number plan knows. */
export type RegionCode = CountryCode;

/** Whether a text is a region whose phone numbers can be read. */
export const isRegionCode = (text: string): text is RegionCode => isSupportedCountry(text);

/**
 * What two ways of typing one contact have in common, within a studio.
 *
 * @param region where phone numbers without a country code are from; null: nobody knows
 */
export function contactKey(contact: Contact, region: RegionCode | null): string {
  const normalised = contact.type === 'email' ? foldCase(contact.value) : normalisePhone(contact.value, region);
  return hash('sha256', `${contact.type}:${normalised}`, 'base64url');
}

/** Upper case first: it unites what only lower-casing keeps apart, as the two lower-case forms of sigma. */
function foldCase(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/** E.164 where the number is possible; else its digits, with a + where one (or 00) led. */
export function normalisePhone(typed: string, region: RegionCode | null): string {
  const ascii = typed
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/^[^\d+\uFF0B]+/u, '')
    .replace('\uFF0B', '+');
  const international = ascii.replace(/^00/, '+');
  const number = possibleNumber(ascii, region) ?? possibleNumber(international, region);
  return number ?? (international.startsWith('+') ? '+' : '') + international.replace(/\D/g, '');
}

function possibleNumber(text: string, region: RegionCode | null): string | undefined {
  const number = parsePhoneNumberFromString(text, region ?? undefined);
  return number?.isPossible() ? number.number : undefined;
}

/** Unicode encodes the decimal digits of every script as runs of ten, each from zero to nine. */
function asciiDigit(digit: string): string {
  const codePoint = digit.codePointAt(0) as number;
  let start = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return String((codePoint - start) % 10);
}

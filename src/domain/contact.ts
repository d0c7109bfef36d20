import { hash } from 'node:crypto';
import { type CountryCode, isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js';

/** The minimum number of digits, without the country code, from which letters that stand apart count as a remark. */
const MIN_DIGITS_BEFORE_REMARK = 7;

export const CONTACT_TYPES = ['email', 'phone'] as const;

/** How to reach a person, exactly as it was typed. */
export interface Contact {
  readonly type: (typeof CONTACT_TYPES)[number];
  readonly value: string;
}

/** An ISO 3166-1 alpha-2 code, in upper case, that has a phone number plan. */
export type RegionCode = CountryCode;

/** Whether a text is a region whose phone numbers can be parsed. */
export const isRegionCode = (text: string): text is RegionCode => isSupportedCountry(text);

/** Whether two contacts are the same text. */
export const isSameContact = (a: Contact, b: Contact): boolean => a.type === b.type && a.value === b.value;

/** Returns the canonical form of a contact; equal for all its spellings. @rule 4.1.same-contact */
export function contactForm({ type, value }: Contact, region: RegionCode | null): string {
  return type === 'email' ? lowerCase(value) : phoneForm(value, region);
}

/**
 * Returns every key of a contact in a region, without duplicates; two contacts are one if they share a key. A form that
 * depends on the region is accompanied by the text itself, which has the same key in every region.
 */
export function contactKeys(contact: Contact, region: RegionCode | null): readonly string[] {
  const key = contactKey(contact.type, contactForm(contact, region));
  return isRegionIndependent(contact) ? [key] : [key, textKey(contact)];
}

/** Whether a contact has the same form in every region: an email address, or a phone number with its country code. */
export const isRegionIndependent = ({ type, value }: Contact): boolean =>
  type === 'email' || dialled(value).ascii.startsWith('+');

/** Returns the stored key of a canonical form: a hash, which does not reveal the contact. */
export const contactKey = (type: Contact['type'], form: string): string =>
  hash('sha256', `${type}:${form}`, 'base64url');

/** Returns the stored key of a contact's text, exactly as it was typed. */
export const textKey = ({ type, value }: Contact): string => hash('sha256', `text:${type}:${value}`, 'base64url');

/**
 * Lower-cases each code point by itself, whatever its neighbours. A code point whose lower case has several (İ) becomes
 * the first of them.
 */
function lowerCase(text: string): string {
  return Array.from(text, (character) => String.fromCodePoint(character.toLowerCase().codePointAt(0) as number)).join(
    '',
  );
}

/**
 * Returns E.164 and the extension if the number is possible; else, if it contains letters, its letters and digits; else
 * its digits, with a + if it began with + or 00.
 */
function phoneForm(typed: string, region: RegionCode | null): string {
  const { ascii, international } = dialled(typed);
  const number = possibleNumber(ascii, international, region);
  if (number?.ext !== undefined) return `${number.number};ext=${number.ext}`;
  if (number && !isSpelled(ascii, number.nationalNumber)) return number.number;
  return /\p{L}/u.test(typed) ? lowerCase(lettersAndDigits(typed)) : digitsOf(international);
}

/** Returns a number from its first digit or + on, in ASCII digits; and the same with a leading 00 replaced by +. */
function dialled(typed: string): { readonly ascii: string; readonly international: string } {
  const ascii = withAsciiDigits(typed)
    .replace(/^[^\d+\uFF0B]+/u, '')
    .replace('\uFF0B', '+');
  return { ascii, international: ascii.replace(/^00/, '+') };
}

function possibleNumber(ascii: string, international: string, region: RegionCode | null) {
  for (const text of [ascii, international]) {
    const number = parsePhoneNumberFromString(text, region ?? undefined);
    if (number?.isPossible()) return number;
  }
  return undefined;
}

/**
 * Whether letters are part of a number, as in 1-800-FLOWERS and 0800 REIFEN: letters next to a digit, or letters and so
 * few digits that they are unlikely to be the whole number. Letters apart from more digits are a remark.
 */
const isSpelled = (ascii: string, nationalNumber: string): boolean =>
  /\d[-./]?\p{L}/u.test(ascii) || (/\p{L}/u.test(ascii) && nationalNumber.length < MIN_DIGITS_BEFORE_REMARK);

const digitsOf = (international: string): string =>
  (international.startsWith('+') ? '+' : '') + international.replace(/\D/g, '');

const lettersAndDigits = (typed: string): string =>
  withAsciiDigits(typed)
    .replace('\uFF0B', '+')
    .replace(/(?!^\+)[^\p{L}\p{M}\p{N}]/gu, '');

const withAsciiDigits = (typed: string): string => typed.replace(/\p{Nd}/gu, asciiDigit);

/** Unicode encodes the decimal digits of every script as runs of ten, each from zero to nine. */
function asciiDigit(digit: string): string {
  const codePoint = digit.codePointAt(0) as number;
  let start = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return String((codePoint - start) % 10);
}

import { hash } from 'node:crypto';
import { type CountryCode, isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js';

/** How many digits a number has at least, without its country code, for letters apart from it not to belong to it. */
const MIN_DIGITS_BEFORE_REMARK = 7;

/** The ways to reach a person. */
export const CONTACT_TYPES = ['email', 'phone'] as const;

/** How to reach a person, as it was typed. */
export interface Contact {
  readonly type: (typeof CONTACT_TYPES)[number];
  readonly value: string;
}

/** Two capital letters of ISO 3166-1 that the phone number plan knows. */
export type RegionCode = CountryCode;

/** Whether a text is a region whose phone numbers can be read. */
export const isRegionCode = (text: string): text is RegionCode => isSupportedCountry(text);

/** Whether two contacts are typed the same. */
export const isSameContact = (a: Contact, b: Contact): boolean => a.type === b.type && a.value === b.value;

/** The form of a contact by the rule of today: what its spellings have in common. @rule 4.1.same-contact */
export function contactForm({ type, value }: Contact, region: RegionCode | null): string {
  return type === 'email' ? lowerCase(value) : phoneForm(value, region);
}

/** The same by the first rule, which took too many contacts for the same; leads of that time may still claim by it. */
export function firstContactForm({ type, value }: Contact, region: RegionCode | null): string {
  if (type === 'email') return value.toUpperCase().toLowerCase();
  const { ascii, international } = dialled(value);
  return possibleNumber(ascii, international, region)?.number ?? digitsOf(international);
}

/** Whether a contact has the same form in every region: an e-mail address, or a phone number with its country code. */
export const isSameEverywhere = ({ type, value }: Contact): boolean =>
  type === 'email' || dialled(value).ascii.startsWith('+');

/** What stands for a form where it is kept: it does not tell the contact. */
export const contactKey = (type: Contact['type'], form: string): string =>
  hash('sha256', `${type}:${form}`, 'base64url');

/** What stands for a contact's text itself, exactly as it was typed. */
export const textKey = ({ type, value }: Contact): string => hash('sha256', `text:${type}:${value}`, 'base64url');

/**
 * Simple lower case, code point by code point, whatever stands beside it. What Unicode lower-cases to several (İ) becomes the
 * first of them.
 */
function lowerCase(text: string): string {
  return Array.from(text, (character) => String.fromCodePoint(character.toLowerCase().codePointAt(0) as number)).join(
    '',
  );
}

/**
 * E.164 and the extension where the number is possible; else, with letters in it, its text without what separates; else its
 * digits, with a + where one (or 00) led.
 */
function phoneForm(typed: string, region: RegionCode | null): string {
  const { ascii, international } = dialled(typed);
  const number = possibleNumber(ascii, international, region);
  if (number?.ext !== undefined) return `${number.number};ext=${number.ext}`;
  if (number && !isSpelled(ascii, number.nationalNumber)) return number.number;
  return /\p{L}/u.test(typed) ? lowerCase(lettersAndDigits(typed)) : digitsOf(international);
}

/** A number without what stands in front of it, in ASCII digits; and the same with a + where 00 leads. */
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
 * Whether letters are a part of a number, as in 1-800-FLOWERS, and in 0800 REIFEN: fewer digits may be possible, but hardly
 * are all of it. What stands apart from more is somebody's remark.
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

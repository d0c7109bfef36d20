import type { CountryCode } from 'libphonenumber-js';
import { lowerCase, possibleNumber, withAsciiDigits } from './phone-number.ts';

/** The minimum number of digits, without the country code, from which letters that stand apart count as a remark. */
const MIN_DIGITS_BEFORE_REMARK = 7;

/** Returns the texts whose hashes are the keys of a phone number in release 1.1. */
export function phoneTextsOf11(value: string, region: CountryCode | null): string[] {
  const form = `phone:${phoneForm(value, region)}`;
  // The same text met whatever its region, on which the form depends.
  return dialled(value).ascii.startsWith('+') ? [form] : [form, `text:phone:${value}`];
}

/**
 * Returns E.164 and the extension if the number is possible; else, if it contains letters, its letters and digits; else
 * its digits, with a + if it began with + or 00.
 */
function phoneForm(typed: string, region: CountryCode | null): string {
  const { ascii, international } = dialled(typed);
  const number = possibleNumber(ascii, region) ?? possibleNumber(international, region);
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

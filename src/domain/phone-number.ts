import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';

const IS_ASCII = /^[\x00-\x7f]*$/;

/**
 * Lower-cases each code point by itself, whatever its neighbours. If the lower case has several code points (İ), only
 * the first is taken.
 */
export function lowerCase(text: string): string {
  if (IS_ASCII.test(text)) return text.toLowerCase();
  return Array.from(text, (character) => String.fromCodePoint(character.toLowerCase().codePointAt(0) as number)).join(
    '',
  );
}

const withAsciiDigits = (text: string): string => text.replace(/\p{Nd}/gu, asciiDigit);

/** Unicode encodes the decimal digits of every script as runs of ten, each from zero to nine. */
function asciiDigit(digit: string): string {
  const codePoint = digit.codePointAt(0) as number;
  let start = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return String((codePoint - start) % 10);
}

/**
 * Returns the forms of a phone number: E.164, if the number is possible in its region, and the digits that are dialled.
 * The second form depends on no region and no library's table, so it never changes.
 */
export function phoneForms(typed: string, region: CountryCode | null): string[] {
  const dialled = dialledNumber(typed);
  const e164 = toE164(dialled, region);
  const suffix = dialled.extension === '' ? '' : `;ext=${dialled.extension}`;
  const asDialled = (dialled.spelled ?? dialled.digits) + suffix;
  if (e164 === undefined) return [asDialled];
  return [dialled.isAfterKl && IS_NORDIC.test(e164) ? e164 : e164 + suffix, asDialled];
}

/** Country codes of regions where `kl. 14` is a time. Elsewhere it is an extension (Klappe, klapka). */
const IS_NORDIC = /^\+(?:4[567]|29[89]|35[48])/;

/**
 * The minimum number of national digits for reading separate letters as a remark. With fewer digits, they are a remark
 * only if the number would be too long with them.
 */
const MIN_NATIONAL_DIGITS = 7;

function toE164({ typedDigits, digits, spelled, isSpelledForSure }: DialledNumber, region: CountryCode | null) {
  if (isSpelledForSure) return undefined;
  // In some regions a number may begin with 00 that does not introduce a country code.
  for (const text of [typedDigits, digits]) {
    const number = possibleNumber(text, region);
    if (!number) continue;
    const letters = spelled === undefined ? 0 : spelled.length - digits.length;
    const maySpell =
      letters > 0 &&
      number.nationalNumber.length < MIN_NATIONAL_DIGITS &&
      possibleNumber(text + '0'.repeat(letters), region) !== undefined;
    return maySpell ? undefined : number.number;
  }
  return undefined;
}

function possibleNumber(text: string, region: CountryCode | null) {
  const number = parsePhoneNumberFromString(text, region ?? undefined);
  return number?.isPossible() ? number : undefined;
}

interface Digits {
  /** The digits, with a leading + if one was typed. */
  readonly typedDigits: string;
  /** The same, with a leading 00 as +. */
  readonly digits: string;
}

interface Spelling {
  /** The digits and letters, if the letters may spell a part of the number; undefined: they are a remark. */
  readonly spelled: string | undefined;
  /** Whether letters next to a digit spell a part of the number. Other letters do so if there are few digits. */
  readonly isSpelledForSure: boolean;
}

/** The dialled part of a phone number as typed: its digits, without separators and remarks. */
interface DialledNumber extends Digits, Spelling {
  /** The digits of its extension; empty: none. */
  readonly extension: string;
  /** Whether its extension follows `kl`. */
  readonly isAfterKl: boolean;
}

/** The maximum length of an E.164 number. In a longer text, letters spell nothing. */
const MAX_DIGITS = 15;

/** The minimum number of digits before separate letters count as a remark. */
const MIN_DIGITS_BEFORE_REMARK = { national: 8, international: 10 } as const;

/** The minimum number of digits before an extension. */
const MIN_DIGITS_BEFORE_EXTENSION = 5;

/** Letters that Japanese, Korean and Chinese keyboards have in place of a hyphen, in NFKC form. */
const DASHES_OF_CJK = /(?<!\p{L})[\u30fc\u1173\u4e00]+(?!\p{L})/gu;

/** Words before an extension, in lower case, in the languages of Europe, the Americas and East Asia. */
const EXTENSION_LABELS = new Set(
  `x xt xtn ext extn extens extension extensión extensao extensão int interno interne interna anexo ramal
  dw durchw durchwahl app apparat ap nst nebenstelle klappe kl poste toestel tst lokal local loc anknytning ankn
  wew wewn wewnętrzny linka klapka mellék dahili εσωτ доб добавочный вн внутр 内線 内线 分机 分機 转 轉 내선 שלוחה تحويلة`.split(
    /\s+/,
  ),
);

/** Parameters of a tel URI (RFC 3966). */
const PARAMETER = /;([a-z-]+)=([^;]*)/g;

/**
 * An extension after a mark, or before a final one: "#5", ";5", ",,5", "- 5#". Other marks may surround it. A mark that
 * also occurs within the number separates its digits.
 */
const MARKED_EXTENSION =
  /^(?<before>(?:[^\d#;]*\d){7,}?)[^\d#;]*?(?:(?:#|;|,{2,})(?<after>(?:\D*\d){1,6})|[^\d#;](?<inside>\d{1,6})#)\D*$/su;

/** Reads a phone number as people type it. It depends on no table, so its result never changes. */
function dialledNumber(typed: string): DialledNumber {
  const text = lowerCase(
    withAsciiDigits(
      typed
        .replace(/\p{Cf}/gu, '')
        .replace(/[\p{P}\p{S}\p{No}\p{Nl}]/gu, plainMark)
        .normalize('NFKC'),
    ),
  ).replace(DASHES_OF_CJK, '-');
  let extension = '';
  const bare = text.replace(PARAMETER, (_, name: string, value: string) => {
    if (name === 'ext') extension = digitsIn(value);
    return '';
  });
  const start = Math.max(bare.search(/\+\P{L}*\d|\d/u), 0);
  const [, number = '', rest = ''] = /^(\P{L}*)(.*)$/su.exec(bare.slice(start)) ?? [];
  const marked = extension === '' ? MARKED_EXTENSION.exec(number)?.groups : undefined;
  if (marked) {
    extension = digitsIn(marked.after ?? marked.inside);
    return { ...parseDigits(marked.before as string), extension, isAfterKl: false, ...NOT_SPELLED };
  }
  const label = digitsIn(number).length < MIN_DIGITS_BEFORE_EXTENSION ? undefined : LABEL.exec(rest)?.groups;
  const isLabel = EXTENSION_LABELS.has(label?.name ?? '');
  return {
    ...parseDigits(number),
    extension: extension || (isLabel ? digitsIn(label?.digits) : ''),
    isAfterKl: extension === '' && label?.name === 'kl',
    ...(isLabel ? NOT_SPELLED : readSpelling(bare, number, rest)),
  };
}

/** Returns a mark in ASCII, such as a full-width plus. Others become separators, including those that NFKC turns into letters (™). */
function plainMark(mark: string): string {
  const plain = mark.normalize('NFKC');
  return /^[!-@[-`{-~]$/.test(plain) ? plain : ' ';
}

const NOT_SPELLED: Spelling = { spelled: undefined, isSpelledForSure: false };

/** Matches the text after a number: a name, possibly the label of an extension, and its digits. */
const LABEL = /^(?<name>[\p{L}\p{M}]+)[^\p{L}\d]*(?<digits>\d[\d-]{0,9})(?!\d)/u;

/**
 * Letters spell a part of the number in two cases. They are next to a digit, and the whole is no longer than a number:
 * 1-800-FLOWERS. Or there are too few digits for a whole number: 0800 REIFEN.
 */
function readSpelling(text: string, number: string, rest: string): Spelling {
  const hasLetters = /\p{L}/u.test(text);
  if (!hasLetters) return NOT_SPELLED;
  const { digits } = parseDigits(number);
  const isNextToDigit = rest !== '' && /\d[-./]?$/.test(number);
  const length = lettersAndDigits(number + rest).length;
  const isSpelledForSure = isNextToDigit && length <= MAX_DIGITS;
  const enough = digits.startsWith('+') ? MIN_DIGITS_BEFORE_REMARK.international : MIN_DIGITS_BEFORE_REMARK.national;
  if (!isSpelledForSure && digitsIn(digits).length >= enough) return NOT_SPELLED;
  // Letters before the number count only if none follow it.
  const spelled = rest === '' ? lettersAndDigits(text) : digits + lettersAndDigits(rest);
  return { spelled, isSpelledForSure };
}

function parseDigits(text: string): Digits {
  const typedDigits = (text.startsWith('+') ? '+' : '') + digitsIn(text);
  return { typedDigits, digits: withoutMobileOne(typedDigits.replace(/^\+?00/, '+')) };
}

/** Until 2019, Mexico's mobile numbers had a 1 after the country code; people still write it. */
const withoutMobileOne = (digits: string): string => digits.replace(/^\+521(\d{10})$/, '+52$1');

const digitsIn = (text = ''): string => text.replace(/\D/g, '');

const lettersAndDigits = (text: string): string => text.replace(/[^\p{L}\p{M}\d]/gu, '');

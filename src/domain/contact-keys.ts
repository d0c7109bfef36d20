import { hash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import { parsePhoneNumberFromString } from 'libphonenumber-js';
import type { ContactType } from '../../common/rules/field-rules.ts';
import { lowerCase } from './comparable-text.ts';
import type { Contact, RegionCode } from './contact.ts';
import { hashedTextsOf11 } from './contact-keys-of-1-1.ts';
import { type DialledNumber, dialledNumber } from './dialled-number.ts';

/**
 * Returns the keys of a contact, without duplicates: two contacts are the same when they share one. Each is a hash,
 * which does not reveal the contact.
 *
 * @param region of phone numbers without a country code; null: unknown
 * @rule 4.1.same-contact
 */
export function contactKeys(contact: Contact, region: RegionCode | null): readonly string[] {
  const { type, value } = contact;
  const forms = FORMS[type](value, region);
  const texts = [...forms.map((form) => `${type}:${form}`), ...hashedTextsOf11(contact, region)];
  return [...new Set(texts)].map((text) => hash('sha256', text, 'base64url'));
}

/** The forms of each type of contact that are compared. */
const FORMS: Readonly<Record<ContactType, (value: string, region: RegionCode | null) => string[]>> = {
  email: (value) => [emailForm(value)],
  phone: phoneForms,
};

/** What a domain cannot have; the URL parser would take it for something else than a part of the domain. */
const NOT_OF_DOMAINS = /[/\\?#%:@[\]<>^|]/;

/** Returns an address in lower case, its domain in ASCII, without invisible characters, which a paste may bring along. */
function emailForm(address: string): string {
  const text = address.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '').normalize('NFC');
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  const parsed = NOT_OF_DOMAINS.test(domain) ? '' : domainToASCII(domain);
  // The URL parser takes numbers for an IPv4 address, also in other notations: 127.1 is no 127.0.0.1 to mail.
  const ascii = isIPv4(parsed) ? '' : parsed;
  return `${lowerCase(local).normalize('NFC')}@${ascii || lowerCase(domain).normalize('NFC')}`;
}

/**
 * Returns the forms of a phone number: E.164, if the number is possible in its region; and what is dialled, which
 * depends on no region and no table of a library, so that it never changes.
 */
function phoneForms(typed: string, region: RegionCode | null): string[] {
  const dialled = dialledNumber(typed);
  const e164 = e164Of(dialled, region);
  return [
    ...(e164 === undefined ? [] : [e164 + suffixOf(dialled)]),
    (dialled.spelled ?? dialled.digits) + suffixOf(dialled),
  ];
}

const suffixOf = ({ extension }: DialledNumber): string => (extension === '' ? '' : `;ext=${extension}`);

/**
 * The minimum number of digits, without the country code, from which letters that stand apart are a remark. With fewer
 * they are one if the number would be too long with them.
 */
const MIN_NATIONAL_DIGITS = 7;

function e164Of({ typedDigits, digits, spelled, isSpelledForSure }: DialledNumber, region: RegionCode | null) {
  if (isSpelledForSure) return undefined;
  // In some regions a number may begin with 00 that is no prefix of a country code.
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

function possibleNumber(text: string, region: RegionCode | null) {
  const number = parsePhoneNumberFromString(text, region ?? undefined);
  return number?.isPossible() ? number : undefined;
}

import { hash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import { type CountryCode, isSupportedCountry } from 'libphonenumber-js';
import type { ContactType } from '../../common/rules/field-rules.ts';
import { lowerCase, phoneForms } from './phone-number.ts';

/** How to reach a person, exactly as it was typed. */
export interface Contact {
  readonly type: ContactType;
  readonly value: string;
}

/** An ISO 3166-1 alpha-2 code, in upper case, that has a phone number plan. */
export type RegionCode = CountryCode;

export const isRegionCode = (text: string): text is RegionCode => isSupportedCountry(text);

export const isSameContact = (a: Contact, b: Contact): boolean => a.type === b.type && a.value === b.value;

/** The regions by which the keys of a studio's leads were computed; null: none. */
export interface StudioRegions {
  readonly regionCode: RegionCode | null;
  /** Those of the past. A region that has become the current one again may be among them. */
  readonly formerRegions: readonly (RegionCode | null)[];
}

/** The claims of an open lead, which it keeps while it is open. No two open leads of a studio share a key. */
export interface OpenClaims {
  /** Without duplicates. */
  readonly contactKeys: readonly string[];
  /** The region of the studio when the lead was opened. */
  readonly regionCode: RegionCode | null;
}

export interface ClaimsOfContact extends OpenClaims {
  readonly contact: Contact;
}

/**
 * The maximum number of keys of former contacts by which a corrected lead is found, the earliest ones: what it was
 * created with is kept.
 */
export const MAX_FORMER_KEYS = 100;

/** Returns the claims of a lead that is opened now. @rule 4.1.3 4.1.same-contact */
export const openClaims = (contact: Contact, { regionCode }: Pick<StudioRegions, 'regionCode'>): OpenClaims => ({
  contactKeys: contactKeys(contact, regionCode),
  regionCode,
});

/** Returns the keys that leads of a contact may have, whenever they were opened. */
export const searchKeys = (contact: Contact, { regionCode, formerRegions }: StudioRegions): readonly string[] => [
  ...new Set([regionCode, ...formerRegions].flatMap((region) => contactKeys(contact, region))),
];

/**
 * Whether leads of a contact may have keys that a search for it does not know: without a region, a number with and one
 * without a country code have none in common.
 */
export const mayHaveOtherKeys = ({ type }: Contact, { regionCode, formerRegions }: StudioRegions): boolean =>
  type === 'phone' && [regionCode, ...formerRegions].includes(null);

/**
 * Returns the keys of a contact, without duplicates: two contacts are the same when they share one. Each is a hash,
 * which does not reveal the contact.
 *
 * @param region of phone numbers without a country code; null: unknown
 * @rule 4.1.same-contact
 */
export const contactKeys = ({ type, value }: Contact, region: RegionCode | null): readonly string[] => [
  ...new Set(FORMS[type](value, region).map((form) => hash('sha256', `${type}:${form}`, 'base64url'))),
];

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

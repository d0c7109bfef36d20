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

/** The regions by which the keys of a studio's leads were computed; null: no region. */
export interface StudioRegions {
  readonly regionCode: RegionCode | null;
  /** Past regions, possibly including the current one. */
  readonly formerRegions: readonly (RegionCode | null)[];
}

/** The uniqueness keys that a lead holds while it is open. No two open leads of a studio share a key. */
export interface ContactKeys {
  /** Without duplicates. */
  readonly contactKeys: readonly string[];
  /** The region of the studio when the lead was opened. */
  readonly regionCode: RegionCode | null;
}

export interface KeyedContact extends ContactKeys {
  readonly contact: Contact;
}

/**
 * The maximum number of former contact keys by which a corrected lead is found. The earliest stay, because the lead keeps
 * its original texts.
 */
export const MAX_FORMER_KEYS = 100;

/** Returns the uniqueness keys of a lead that is opened now. @rule 4.1.3 4.1.same-contact */
export const toContactKeys = (contact: Contact, { regionCode }: StudioRegions): ContactKeys => ({
  contactKeys: contactKeys(contact, regionCode),
  regionCode,
});

/** Returns the keys that leads of a contact may have, whenever they were opened. */
export const searchKeys = (contact: Contact, { regionCode, formerRegions }: StudioRegions): readonly string[] => [
  ...new Set([regionCode, ...formerRegions].flatMap((region) => contactKeys(contact, region))),
];

/** Whether a search may miss leads: without a region, a number with a country code and one without share no key. */
export const mayMissLeads = ({ type }: Contact, { regionCode, formerRegions }: StudioRegions): boolean =>
  type === 'phone' && [regionCode, ...formerRegions].includes(null);

/**
 * Returns the keys of a contact, without duplicates. Two contacts are the same when they share one. Each key is a hash,
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

/** Characters that a domain cannot have. The URL parser would read them as another part of a URL. */
const NOT_OF_DOMAINS = /[/\\?#%:@[\]<>^|]/;

/** Returns an address in lower case, with its domain in ASCII, and without invisible characters that a paste may add. */
function emailForm(address: string): string {
  const text = address.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '').normalize('NFC');
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  const parsed = NOT_OF_DOMAINS.test(domain) ? '' : domainToASCII(domain);
  // The URL parser reads numbers in other notations as an IPv4 address, too: to mail, 127.1 is not 127.0.0.1.
  const ascii = isIPv4(parsed) ? '' : parsed;
  return `${lowerCase(local).normalize('NFC')}@${ascii || lowerCase(domain).normalize('NFC')}`;
}

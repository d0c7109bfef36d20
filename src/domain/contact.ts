import { type CountryCode, isSupportedCountry } from 'libphonenumber-js';
import type { ContactType } from '../../common/rules/field-rules.ts';

/** How to reach a person, exactly as it was typed. */
export interface Contact {
  readonly type: ContactType;
  readonly value: string;
}

/** An ISO 3166-1 alpha-2 code, in upper case, that has a phone number plan. */
export type RegionCode = CountryCode;

/** Whether a text is a region whose phone numbers can be parsed. */
export const isRegionCode = (text: string): text is RegionCode => isSupportedCountry(text);

/** Whether two contacts are the same text. */
export const isSameContact = (a: Contact, b: Contact): boolean => a.type === b.type && a.value === b.value;

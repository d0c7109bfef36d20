import type { Contact, RegionCode } from './contact.ts';
import { contactKeys } from './contact-keys.ts';

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

/**
 * The maximum number of keys of former contacts by which a corrected lead is found, the earliest ones: what it was
 * created with is kept.
 */
export const MAX_FORMER_KEYS = 100;

export interface ClaimsOfContact extends OpenClaims {
  readonly contact: Contact;
}

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

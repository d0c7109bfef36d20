import {
  type Contact,
  contactForm,
  contactFormV1,
  contactKey,
  isRegionIndependent,
  type RegionCode,
  textKey,
} from './contact.ts';

/** How contacts are compared: the version of the rule, and the region of phone numbers without a country code. */
export interface ContactRule {
  readonly version: number;
  /** Null: unknown. */
  readonly region: RegionCode | null;
}

/** The current version of the contact rule. Version 1 treated too many contacts as equal. */
export const CONTACT_RULE_VERSION = 2;

/** The properties of a studio that determine the contact rules of its open leads. */
export interface ContactRules {
  readonly regionCode: RegionCode | null;
  /** Former rules whose claims open leads may still hold. */
  readonly formerRules: readonly ContactRule[];
}

/** The claims of an open lead, and the rule they were computed by. No two leads of a studio share a claim. */
export interface OpenClaims {
  /** The keys of its contact's canonical forms, without duplicates; the one of the current rule first. */
  readonly contactKeys: readonly string[];
  readonly contactRule: ContactRule;
}

export interface ClaimsOfContact extends OpenClaims {
  readonly contact: Contact;
}

/**
 * Returns the claims of a lead that is opened now: the canonical form of its contact by the current rule, and by each
 * former rule that other leads may still claim by. A form that depends on the region is accompanied by the text itself:
 * the same text then conflicts whatever the region is changed to, also in requests that have read the former region.
 *
 * @rule 4.1.3 4.1.same-contact
 */
export function openClaims(contact: Contact, { regionCode, formerRules }: ContactRules): OpenClaims {
  const contactRule = { version: CONTACT_RULE_VERSION, region: regionCode };
  const keys = [contactRule, ...formerRules].map((rule) => contactKey(contact.type, formBy(rule, contact)));
  if (!isRegionIndependent(contact)) keys.push(textKey(contact));
  return { contactKeys: [...new Set(keys)], contactRule };
}

export const isSameRule = (a: ContactRule, b: ContactRule): boolean => a.version === b.version && a.region === b.region;

function formBy({ version, region }: ContactRule, contact: Contact): string {
  return version === 1 ? contactFormV1(contact, region) : contactForm(contact, region);
}

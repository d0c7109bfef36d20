import {
  type Contact,
  contactForm,
  contactKey,
  firstContactForm,
  isSameEverywhere,
  type RegionCode,
  textKey,
} from './contact.ts';

/** What contacts are told apart by: the version of the rule, and where phone numbers without a country code are from. */
export interface ContactRule {
  readonly version: number;
  /** Null: nobody knows. */
  readonly region: RegionCode | null;
}

/** The rule that leads are opened by today; version 1 took too many contacts for the same. */
export const CONTACT_RULE_VERSION = 2;

/** What of a studio decides by which rules its open leads are held apart. */
export interface ContactRules {
  readonly regionCode: RegionCode | null;
  /** Rules by which open leads may still claim. */
  readonly formerRules: readonly ContactRule[];
}

/** What an open lead claims, and by which rule. No two leads of a studio have a claim in common. */
export interface OpenClaims {
  /** Keys of the forms of its contact: first that of today's rule; each once. */
  readonly contactKeys: readonly string[];
  readonly contactRule: ContactRule;
}

/** What a contact claims. */
export interface ClaimsOfContact extends OpenClaims {
  readonly contact: Contact;
}

/**
 * What a lead claims that is opened now: the form of its contact by today's rule, and by each former rule that others may
 * still claim by. Where the form depends on the region, it claims the text as well: so the same text is held to whatever
 * becomes of the region, also by who has not heard of that yet.
 *
 * @rule 4.1.3 4.1.same-contact
 */
export function openClaims(contact: Contact, { regionCode, formerRules }: ContactRules): OpenClaims {
  const contactRule = { version: CONTACT_RULE_VERSION, region: regionCode };
  const keys = [contactRule, ...formerRules].map((rule) => contactKey(contact.type, formBy(rule, contact)));
  if (!isSameEverywhere(contact)) keys.push(textKey(contact));
  return { contactKeys: [...new Set(keys)], contactRule };
}

/** Whether two rules are the same. */
export const isSameRule = (a: ContactRule, b: ContactRule): boolean => a.version === b.version && a.region === b.region;

function formBy({ version, region }: ContactRule, contact: Contact): string {
  return version === 1 ? firstContactForm(contact, region) : contactForm(contact, region);
}

import { isSameContact } from './contact.ts';
import type { Lead } from './lead.ts';

/** The fields of a lead that can be corrected, in the order of the audit log. */
export const CORRECTABLE_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
type CorrectableField = (typeof CORRECTABLE_FIELDS)[number];

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<Pick<Lead, CorrectableField>>;

/** The public fields of a lead as created, which a correction may have changed since. */
export type OriginalFields = Pick<Lead, 'displayName' | 'sourceId' | 'note'>;

/** Returns the fields whose values a correction changes. */
export function correctedFields(lead: Lead, correction: Correction): CorrectableField[] {
  return CORRECTABLE_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

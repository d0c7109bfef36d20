import { isSameContact } from './contact.ts';
import type { Lead } from './lead.ts';

/** What of a lead can be corrected, in the order in which the audit names it. */
export const CORRECTABLE_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
type CorrectableField = (typeof CORRECTABLE_FIELDS)[number];

/** Other values of some of a lead's fields; what is not there stays as it is. */
export type Correction = Partial<Pick<Lead, CorrectableField>>;

/** What a creation was answered with and a correction may have changed since. */
export type OriginalFields = Pick<Lead, 'displayName' | 'sourceId' | 'note'>;

/** The fields that a correction gives other values than a lead has. */
export function correctedFields(lead: Lead, correction: Correction): CorrectableField[] {
  return CORRECTABLE_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

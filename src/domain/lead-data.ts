import { captureFault, DATA_FIELDS, TEXT_FIELDS, type TextField } from '../../common/rules/field-rules.ts';
import { type Contact, isSameContact } from './contact.ts';
import type { Faults } from './refusal.ts';

export { DATA_FIELDS, TEXT_FIELDS };

/** The texts of a lead; null: it has none. A correction keeps the original ones for replays. */
export interface OriginalFields extends Readonly<Record<TextField, string | null>> {
  readonly displayName: string;
}

export interface LeadData extends OriginalFields {
  readonly contact: Contact;
}

export type DataField = keyof LeadData;

/** The texts that were added after release 1.2. An older record has none of them. */
export const ADDED_TEXTS: readonly TextField[] = TEXT_FIELDS.filter(
  (field) => !['displayName', 'sourceId', 'note'].includes(field),
);

/** The unchecked data of a lead. */
export interface GivenLeadData extends OriginalFields {
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
}

/** Notes the faults of a lead's data. Absent and null fields have none. @param prefix precedes the fields' names */
export function noteLeadFaults(faults: Faults, data: Partial<GivenLeadData>, prefix = ''): void {
  for (const field of DATA_FIELDS) {
    if (field === 'contact') {
      if ('contact' in data) noteContactFault(faults, `${prefix}contact`, data.contact);
    } else if (typeof data[field] === 'string') faults.note(`${prefix}${field}`, captureFault(field, data[field]));
  }
}

/** Adds the faults of a required contact. @param field its JSON path in the request */
export function noteContactFault(faults: Faults, field: string, contact: Contact | undefined): void {
  if (contact) faults.note(`${field}.${contact.type}`, captureFault(contact.type, contact.value));
  else faults.note(field, 'must have an email or a phone');
}

/** Texts that may be absent, except the name. */
export interface GivenTexts extends Readonly<Partial<Record<TextField, string | null | undefined>>> {
  readonly displayName: string;
}

/** Returns only the texts of a record. An absent text becomes null. */
export function readTexts(record: GivenTexts): OriginalFields {
  const texts = Object.fromEntries(TEXT_FIELDS.map((field) => [field, record[field] ?? null]));
  return { ...(texts as Record<TextField, string | null>), displayName: record.displayName };
}

/** Returns the data of a lead as it is stored. @param given without faults */
export const toLeadData = (given: GivenLeadData): LeadData => ({
  ...readTexts(given),
  contact: given.contact as Contact,
  sourceId: given.sourceId?.toLowerCase() ?? null,
});

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<LeadData>;

export function correctedFields(lead: LeadData, correction: Correction): DataField[] {
  return DATA_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

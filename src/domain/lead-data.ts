import { captureFault } from '../../common/rules/field-rules.ts';
import { type Contact, isSameContact } from './contact.ts';
import type { Faults } from './refusal.ts';

/**
 * The fields of a lead that callers give when they create it, and can correct; in the order of the audit log and of an
 * export.
 */
export const DATA_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
export type DataField = (typeof DATA_FIELDS)[number];

export interface LeadData {
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: string | null;
  readonly note: string | null;
}

/** Those that are one text. A correction keeps what they were created with, for a replay. */
export const TEXT_FIELDS = DATA_FIELDS.filter((field) => field !== 'contact');
export type OriginalFields = Pick<LeadData, (typeof TEXT_FIELDS)[number]>;

/** The data of a lead, not yet checked. */
export interface GivenLeadData {
  readonly displayName: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
  readonly sourceId: string | undefined;
  readonly note: string | undefined;
}

/**
 * Notes the faults of the data of a lead. What is absent, or null, has none.
 *
 * @param at precedes the fields' names
 */
export function noteLeadFaults(
  faults: Faults,
  data: { readonly [Field in keyof GivenLeadData]?: GivenLeadData[Field] | null },
  at = '',
): void {
  for (const field of DATA_FIELDS) {
    if (field === 'contact') {
      if ('contact' in data) noteContactFault(faults, `${at}contact`, data.contact);
    } else if (typeof data[field] === 'string') faults.note(`${at}${field}`, captureFault(field, data[field]));
  }
}

/** Adds the faults of a required contact. @param field its JSON path in the request */
export function noteContactFault(faults: Faults, field: string, contact: Contact | null | undefined): void {
  if (contact) faults.note(`${field}.${contact.type}`, captureFault(contact.type, contact.value));
  else faults.note(field, 'must have an email or a phone');
}

/** Returns the data of a lead as they are stored. @param given without faults */
export const leadDataOf = ({ displayName, contact, sourceId, note }: GivenLeadData): LeadData => ({
  displayName,
  contact: contact as Contact,
  sourceId: sourceId?.toLowerCase() ?? null,
  note: note ?? null,
});

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<LeadData>;

export function correctedFields(lead: LeadData, correction: Correction): DataField[] {
  return DATA_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

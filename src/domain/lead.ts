import { assert } from '../../common/invariants.ts';
import { contactFault, displayNameFault, noteFault, uuidFault } from '../../common/rules/field-rules.ts';
import { STAGES } from '../../common/rules/public-api.ts';
import { type Contact, isSameContact } from './contact.ts';
import type { Faults } from './refusal.ts';

export const LEAD_STAGES = STAGES;
export type LeadStage = (typeof LEAD_STAGES)[number];

/** Whether a lead in this stage is open: it then prevents another open lead of its contact. @rule 3.1.open */
export const isOpen = (stage: LeadStage): boolean => stage !== 'won' && stage !== 'lost';

/** The maximum number of leads of one contact that a search reads. */
export const MAX_LEADS_PER_CONTACT = 1000;

/** How much of a lead a response contains; only the full view has the contact. */
export type LeadView = 'basic' | 'full';

/**
 * A person's interest in a studio. Ids are UUIDs in lower case; texts are stored exactly as typed.
 *
 * @rule 2.2.unchanged 2.2.uuids
 */
export interface Lead {
  readonly id: string;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: string | null;
  readonly note: string | null;
  readonly stage: LeadStage;
  readonly createdAt: Date;
  /** Whole milliseconds; grows with every change. */
  readonly updatedAt: Date;
}

/** What remains of a lead whose personal data were erased: its existence, stage and times. */
export interface ErasedLead extends Pick<Lead, 'id' | 'studioId' | 'stage' | 'createdAt' | 'updatedAt'> {
  readonly erasedAt: Date;
}

/** Returns a lead as it was when created. `lead` must have its original fields. @rule 4.1.original */
export const asCreated = (lead: Lead): Lead => ({ ...lead, stage: 'new', updatedAt: lead.createdAt });

/** Returns the next `updatedAt`: now, but later than the previous one. @rule 2.1.updatedAt 3.1.moves */
export function nextUpdate(previous: Date, now: Date): Date {
  const next = new Date(Math.max(now.getTime(), previous.getTime() + 1));
  assert(next > previous, 'update_time_grows');
  return next;
}

export type LeadData = Pick<Lead, CorrectableField>;

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
  const { displayName, contact, sourceId, note } = data;
  if (typeof displayName === 'string') faults.note(`${at}displayName`, displayNameFault(displayName));
  if ('contact' in data) noteContactFault(faults, `${at}contact`, contact);
  if (typeof sourceId === 'string') faults.note(`${at}sourceId`, uuidFault(sourceId));
  if (typeof note === 'string') faults.note(`${at}note`, noteFault(note));
}

/** Adds the faults of a required contact. @param field its JSON path in the request */
export function noteContactFault(faults: Faults, field: string, contact: Contact | null | undefined): void {
  if (contact) faults.note(`${field}.${contact.type}`, contactFault(contact.type, contact.value));
  else faults.note(field, 'must have an email or a phone');
}

/** Returns the data of a lead as they are stored. @param given without faults */
export const leadDataOf = ({ displayName, contact, sourceId, note }: GivenLeadData): LeadData => ({
  displayName,
  contact: contact as Contact,
  sourceId: sourceId?.toLowerCase() ?? null,
  note: note ?? null,
});

/** The fields of a lead that can be corrected, in the order of the audit log. */
export const CORRECTABLE_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
type CorrectableField = (typeof CORRECTABLE_FIELDS)[number];

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<Pick<Lead, CorrectableField>>;

/** The public fields of a lead as created, which a correction may have changed since. */
export type OriginalFields = Pick<Lead, 'displayName' | 'sourceId' | 'note'>;

export function correctedFields(lead: Lead, correction: Correction): CorrectableField[] {
  return CORRECTABLE_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

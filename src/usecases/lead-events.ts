import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { AuditEvent } from '../domain/audit.ts';
import type { Enquiry } from '../domain/enquiry.ts';
import { LEAD_STAGES, type Lead, type LeadStage } from '../domain/lead.ts';
import { DATA_FIELDS, type DataField } from '../domain/lead-data.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Reading } from './dependencies.ts';

/** Something that has happened to a lead. It has none of its texts. */
export interface LeadEvent extends Pick<AuditEvent, 'time' | 'memberId' | 'caller'> {
  readonly what: /** Null: a stage of another release. */
    | { readonly kind: 'stage-move'; readonly from: LeadStage | null; readonly to: LeadStage | null }
    | { readonly kind: 'correction'; readonly fields: readonly DataField[] }
    | { readonly kind: 'erasure' }
    | { readonly kind: 'enquiry'; readonly sourceId: string | null };
}

/**
 * Lists what has happened to a lead since its creation, oldest first: its audit events, at most MAX_AUDIT_EVENTS, and its
 * enquiries. Of an erased lead its audit events remain.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 */
export async function listLeadEvents(
  { store }: Reading,
  { studioId, leadId: given }: { readonly studioId: string; readonly leadId: string },
): Promise<LeadEvent[]> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(given));
  faults.refuseIfAny();
  const leadId = given.toLowerCase();
  const lead = await store.findLead(studioId, leadId);
  if (!lead && (await store.presenceOfLead(studioId, leadId)) === null) throw new Refusal('LEAD_NOT_FOUND');
  return eventsOfLead({ store }, lead ?? { studioId, id: leadId });
}

/** Returns the same for a lead that is there. @param lead its enquiries are those with which it was read */
export async function eventsOfLead(
  { store }: Reading,
  { studioId, id, enquiries = [] }: Pick<Lead, 'studioId' | 'id'> & Partial<Pick<Lead, 'enquiries'>>,
): Promise<LeadEvent[]> {
  const audited = (await store.listAuditEvents(studioId, id)).toReversed().flatMap(toLeadEvents);
  const events = [...audited, ...enquiries.map(enquiryEvent)];
  return events.sort((a, b) => a.time.getTime() - b.time.getTime());
}

function toLeadEvents({ action, time, memberId, caller, from, to }: AuditEvent): LeadEvent[] {
  const by = { time, memberId, caller };
  switch (action) {
    case 'lead-stage-changed':
      return [{ ...by, what: { kind: 'stage-move', from: stageIn(from), to: stageIn(to) } }];
    case 'lead-updated':
      return [{ ...by, what: { kind: 'correction', fields: fieldsIn(to) } }];
    case 'lead-erased':
      return [{ ...by, what: { kind: 'erasure' } }];
    default:
      return [];
  }
}

const enquiryEvent = ({ time, sourceId }: Enquiry): LeadEvent => ({
  time,
  memberId: null,
  caller: null,
  what: { kind: 'enquiry', sourceId },
});

const stageIn = (text: string | null): LeadStage | null => LEAD_STAGES.find((stage) => stage === text) ?? null;

const fieldsIn = (text: string | null): DataField[] => DATA_FIELDS.filter((field) => text?.split(',').includes(field));

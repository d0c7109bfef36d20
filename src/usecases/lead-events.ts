import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { AuditEvent } from '../domain/audit.ts';
import type { Enquiry } from '../domain/enquiry.ts';
import { LEAD_STAGES, type LeadOfStudio, type LeadStage } from '../domain/lead.ts';
import { DATA_FIELDS, type DataField } from '../domain/lead-data.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Reading } from './dependencies.ts';

/** An event in the history of a lead. It contains none of the lead's texts. */
export interface LeadEvent {
  readonly time: Date;
  readonly memberId: string | null;
  readonly caller: string | null;
  readonly what: /** Null: a stage of another release. */
    | { readonly kind: 'stage-move'; readonly from: LeadStage | null; readonly to: LeadStage | null }
    | { readonly kind: 'correction'; readonly fields: readonly DataField[] }
    | { readonly kind: 'erasure' }
    | { readonly kind: 'enquiry'; readonly sourceId: string | null };
}

/**
 * Lists the history of a lead, oldest first: at most MAX_AUDIT_EVENTS audit events, and its enquiries. An erased lead
 * keeps only its audit events.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 */
export async function listLeadEvents(
  { store }: Reading,
  { studioId, leadId: given }: LeadOfStudio,
): Promise<LeadEvent[]> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(given));
  faults.refuseIfAny();
  const leadId = given.toLowerCase();
  const lead = await store.findLead(studioId, leadId);
  if (!lead && (await store.presenceOfLead(studioId, leadId)) === null) throw new Refusal('LEAD_NOT_FOUND');
  return eventsOfLead({ store }, { studioId, leadId }, lead?.enquiries);
}

/** Does what listLeadEvents does, for a lead that is known to exist. @param enquiries the lead's, as read with it */
export async function eventsOfLead(
  { store }: Reading,
  { studioId, leadId }: LeadOfStudio,
  enquiries: readonly Enquiry[] = [],
): Promise<LeadEvent[]> {
  const audited = (await store.listAuditEvents(studioId, leadId)).toReversed().flatMap(toLeadEvents);
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

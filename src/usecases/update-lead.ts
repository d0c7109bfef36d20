import { crmIdFault, displayNameFault, noteFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Requester, requestIdentity } from '../domain/audit.ts';
import { type Contact, openClaims } from '../domain/contact.ts';
import type { Correction, Lead } from '../domain/lead.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { DirectoryStore, LeadStore } from '../store/store.ts';
import { sourceInvalid } from './create-lead.ts';
import { leadNotFound } from './get-lead.ts';
import { regionsOf } from './keep-directory.ts';
import { noteContactFault } from './note-contact-fault.ts';

interface UpdateDependencies {
  readonly store: Pick<LeadStore, 'findLead' | 'updateLead' | 'isLeadChangeApplied'> &
    Pick<DirectoryStore, 'findStudio' | 'findLeadSource'>;
  readonly clock: Clock;
}

/** A request to correct a lead, not yet checked. An absent field does not change; null removes its value. */
export interface UpdateLeadCommand extends Requester {
  readonly studioId: string;
  readonly leadId: string;
  readonly fields: {
    readonly displayName?: string;
    /** Present but undefined: neither an email address nor a phone number. */
    readonly contact?: Contact | undefined;
    readonly sourceId?: string | null;
    readonly note?: string | null;
  };
  /** The `updatedAt` that the lead must still have; undefined: any. */
  readonly expectedUpdatedAt?: Date | undefined;
}

/**
 * Corrects a lead.
 *
 * @param faults those found while the command was parsed
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND, UPDATE_TIME_MISMATCH, SOURCE_INVALID, LEAD_ALREADY_OPEN
 */
export async function updateLead(
  { store, clock }: UpdateDependencies,
  command: UpdateLeadCommand,
  faults = new Faults(),
): Promise<Lead> {
  const { studioId, expectedUpdatedAt = null } = command;
  const { leadId, correction } = validate(command, faults);

  const requestId = requestIdentity(command.requestId, 'update lead', studioId, leadId);
  const isRepetition = requestId !== undefined && (await store.isLeadChangeApplied(studioId, leadId, requestId));
  const lead = await store.findLead(studioId, leadId);
  if (!lead) throw leadNotFound();
  // The conditions below held when the change was applied.
  if (isRepetition) return lead;
  if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime()) throw updateTimeMismatch();
  const { sourceId, contact = lead.contact } = correction;
  if (typeof sourceId === 'string' && sourceId !== lead.sourceId) {
    const source = await store.findLeadSource(studioId, sourceId);
    if (!source?.enabled) throw sourceInvalid();
  }
  const regions = await regionsOf(store, studioId);
  const outcome = await store.updateLead({
    studioId,
    leadId,
    correction,
    claims: openClaims(contact, regions),
    expectedUpdatedAt,
    memberId: command.memberId ?? null,
    caller: command.caller,
    now: clock(),
    requestId,
  });
  switch (outcome.kind) {
    case 'updated':
    case 'unchanged':
      return outcome.lead;
    case 'not-found':
      throw leadNotFound();
    case 'stale':
      throw updateTimeMismatch();
    case 'already-open':
      throw new Refusal('LEAD_ALREADY_OPEN', 'The contact has another open lead.', {
        metadata: { leadId: outcome.leadId },
      });
  }
}

const updateTimeMismatch = () =>
  new Refusal('UPDATE_TIME_MISMATCH', 'The lead has changed since the time that was expected.');

function validate({ studioId, leadId, fields, memberId, requestId }: UpdateLeadCommand, faults: Faults) {
  const { displayName, contact, sourceId, note } = fields;
  faults.note('studioId', crmIdFault(studioId));
  faults.note('lead.id', uuidFault(leadId));
  if (displayName !== undefined) faults.note('lead.displayName', displayNameFault(displayName));
  if ('contact' in fields) noteContactFault(faults, 'lead.contact', contact);
  if (typeof sourceId === 'string') faults.note('lead.sourceId', uuidFault(sourceId));
  if (typeof note === 'string') faults.note('lead.note', noteFault(note));
  if (memberId !== undefined) faults.note('memberId', crmIdFault(memberId));
  if (requestId !== undefined) faults.note('requestId', uuidFault(requestId));
  faults.refuseIfAny();
  const correction: Correction = {
    ...(displayName !== undefined && { displayName }),
    ...(contact !== undefined && { contact }),
    ...(sourceId !== undefined && { sourceId: sourceId?.toLowerCase() ?? null }),
    ...(note !== undefined && { note }),
  };
  return { leadId: leadId.toLowerCase(), correction };
}

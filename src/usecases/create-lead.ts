import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { Actor } from '../domain/audit.ts';
import { toContactKeys } from '../domain/contact.ts';
import { computeFingerprint } from '../domain/fingerprint.ts';
import { asCreated, type Lead } from '../domain/lead.ts';
import { type CreateLeadOutcome, refusalOfCreation, replayOutcome } from '../domain/lead-creation.ts';
import { type GivenLeadData, noteLeadFaults, toLeadData } from '../domain/lead-data.ts';
import { timeOfId } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { LeadSource, Studio } from '../domain/studio.ts';
import type { Store } from '../store/store.ts';
import type { Dependencies } from './dependencies.ts';

/** The unchecked data of a creation. */
export interface GivenCreation extends GivenLeadData {
  readonly idempotencyKey: string;
}

export interface CreateLeadCommand extends GivenCreation {
  readonly studioId: string;
}

/** The records that a creation depends on: its studio, and the lead's source. */
export interface LeadContext {
  readonly studio: Studio | null;
  readonly source: LeadSource | null;
  /** The API key of the request; absent: it has none. */
  readonly key?: ApiKey;
}

/** The lead as it was created, and whether an earlier request created it. */
export interface CreatedLead {
  readonly lead: Lead;
  readonly replayed: boolean;
}

/**
 * Creates a lead, or replays an earlier creation. If an open lead prevents it, that lead keeps the data as an enquiry,
 * unless the studio has switched that off.
 *
 * @param read the studio and the source, if authentication has read them already
 * @param by the actor for the audit log; absent: a visitor, whom the log does not record
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, STUDIO_ENDED, SOURCE_INVALID, IDEMPOTENCY_CONFLICT, LEAD_ALREADY_OPEN
 * @rule 3.1.initial 4.1.1 4.1.2 4.1.3 4.1.4 4.1.enquiry 7.order
 */
export async function createLead(
  { store, newId }: Dependencies,
  command: CreateLeadCommand,
  read?: LeadContext,
  by?: Actor,
): Promise<CreatedLead> {
  const { studioId } = command;
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  noteCreationFaults(faults, command);
  faults.refuseIfAny();
  const idempotencyKey = command.idempotencyKey.toLowerCase();
  const capture = toLeadData(command);
  const fingerprint = computeFingerprint(capture);

  const { studio, source, key }: LeadContext = read ?? (await readLeadContext(store, studioId, capture.sourceId));
  if (!studio) throw new Refusal('STUDIO_NOT_FOUND');
  if (studio.status === 'ended') throw new Refusal('STUDIO_ENDED');

  if (capture.sourceId !== null && !source?.enabled) {
    // The source may have been disabled after the lead was created. A retry still gets the original response.
    const earlier = await store.findLeadByIdempotencyKey(studioId, idempotencyKey);
    if (!earlier) throw new Refusal('SOURCE_INVALID');
    return toCreatedLead(replayOutcome(earlier, fingerprint));
  }

  const id = newId();
  const createdAt = timeOfId(id);
  const created = { id, studioId, ...capture, stage: 'new', createdAt, updatedAt: createdAt } as const;
  const lead: Lead = key ? { ...created, apiKeyId: key.id } : created;
  const keys = { idempotencyKey, fingerprint, ...toContactKeys(capture.contact, studio) };
  return toCreatedLead(await store.createLead(lead, keys, { keepsEnquiry: studio.keepEnquiries, by }));
}

async function readLeadContext(store: Store, studioId: string, sourceId: string | null): Promise<LeadContext> {
  // Read concurrently, because a store may combine the two reads.
  const [studio, source] = await Promise.all([
    store.findStudio(studioId),
    sourceId === null ? null : store.findLeadSource(studioId, sourceId),
  ]);
  return { studio, source };
}

function toCreatedLead(outcome: CreateLeadOutcome): CreatedLead {
  switch (outcome.kind) {
    case 'created':
      return { lead: outcome.lead, replayed: false };
    case 'replayed':
      return { lead: asCreated(outcome.lead), replayed: true };
    default:
      throw refusalOfCreation(outcome);
  }
}

/** Notes the faults of a creation, in the order of the contract. */
export function noteCreationFaults(faults: Faults, command: GivenCreation): void {
  faults.note('idempotencyKey', uuidFault(command.idempotencyKey));
  noteLeadFaults(faults, command);
}

import { crmIdFault, displayNameFault, noteFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Contact, openClaims } from '../domain/contact.ts';
import { asCreated, fingerprintOf, type Lead, type LeadData } from '../domain/lead.ts';
import { type NewId, timeOfId } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { LeadSource, Studio } from '../domain/studio.ts';
import { replayOutcome } from '../store/decisions.ts';
import type { CreateLeadOutcome, DirectoryStore, LeadStore } from '../store/store.ts';
import { noteContactFault } from './note-contact-fault.ts';

/** A request to create a lead, not yet checked. */
export interface CreateLeadCommand {
  readonly studioId: string;
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: Contact | undefined;
  readonly sourceId: string | undefined;
  readonly note: string | undefined;
}

/** The records that a creation depends on: its studio, and the source that the lead names. */
export interface LeadContext {
  readonly studio: Studio | null;
  readonly source: LeadSource | null;
}

/** The lead as it was created, and whether an earlier request created it. */
export interface CreatedLead {
  readonly lead: Lead;
  readonly replayed: boolean;
}

interface CreationDependencies {
  readonly store: Pick<LeadStore, 'createLead' | 'findLeadByIdempotencyKey'> &
    Pick<DirectoryStore, 'findStudio' | 'findLeadSource'>;
  readonly newId: NewId;
}

/**
 * Creates a lead, or replays an earlier creation.
 *
 * @param read the studio and the source, if they were read while the request was authenticated
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, SOURCE_INVALID, IDEMPOTENCY_CONFLICT, LEAD_ALREADY_OPEN
 * @rule 3.1.initial 4.1.1 4.1.2 4.1.3 4.1.4 7.order
 */
export async function createLead(
  { store, newId }: CreationDependencies,
  command: CreateLeadCommand,
  read?: LeadContext,
): Promise<CreatedLead> {
  const { studioId, idempotencyKey, capture } = validate(command);
  const fingerprint = fingerprintOf(capture);

  const { studio, source } = read ?? (await readLeadContext(store, studioId, capture.sourceId));
  if (!studio) throw new Refusal('STUDIO_NOT_FOUND', 'There is no such studio.');

  if (capture.sourceId !== null && !source?.enabled) {
    // The source may have been disabled after the lead was created; a retry still gets the original response.
    const earlier = await store.findLeadByIdempotencyKey(studioId, idempotencyKey);
    if (!earlier) throw sourceInvalid();
    return resultOf(replayOutcome(earlier, fingerprint));
  }

  const id = newId();
  const createdAt = timeOfId(id);
  const lead: Lead = { id, studioId, ...capture, stage: 'new', createdAt, updatedAt: createdAt };
  const claims = { idempotencyKey, fingerprint, ...openClaims(capture.contact, studio) };
  return resultOf(await store.createLead(lead, claims));
}

async function readLeadContext(
  store: CreationDependencies['store'],
  studioId: string,
  sourceId: string | null,
): Promise<LeadContext> {
  // Concurrently, because a store may combine the two reads.
  const [studio, source] = await Promise.all([
    store.findStudio(studioId),
    sourceId === null ? null : store.findLeadSource(studioId, sourceId),
  ]);
  return { studio, source };
}

function resultOf(outcome: CreateLeadOutcome): CreatedLead {
  switch (outcome.kind) {
    case 'created':
      return { lead: outcome.lead, replayed: false };
    case 'replayed':
      return { lead: asCreated(outcome.lead), replayed: true };
    default:
      throw refusalOfCreation(outcome);
  }
}

export const sourceInvalid = () =>
  new Refusal('SOURCE_INVALID', 'The source does not belong to the studio or is disabled.');

/** Returns the refusal for a lead that was not created. */
export function refusalOfCreation(
  outcome: Exclude<CreateLeadOutcome, { readonly kind: 'created' | 'replayed' }>,
): Refusal {
  switch (outcome.kind) {
    case 'idempotency-conflict':
      return idempotencyConflict();
    case 'erased':
      return creationErased();
    case 'already-open':
      return leadAlreadyOpen(outcome.leadId);
  }
}

const leadAlreadyOpen = (leadId: string) =>
  new Refusal('LEAD_ALREADY_OPEN', 'The contact already has an open lead.', { metadata: { leadId } });

/** The fingerprint was erased too, so the data cannot be compared. A late retry must not recreate the person's data. */
const creationErased = () =>
  new Refusal('IDEMPOTENCY_CONFLICT', 'The lead that the idempotency key created was erased.', {
    metadata: { erased: 'true' },
  });

function idempotencyConflict(): Refusal {
  return new Refusal('IDEMPOTENCY_CONFLICT', 'The idempotency key was used with other data.');
}

function validate(command: CreateLeadCommand): { studioId: string; idempotencyKey: string; capture: LeadData } {
  const { studioId, idempotencyKey, displayName, contact, sourceId, note } = command;
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('idempotencyKey', uuidFault(idempotencyKey));
  faults.note('displayName', displayNameFault(displayName));
  noteContactFault(faults, 'contact', contact);
  if (sourceId !== undefined) faults.note('sourceId', uuidFault(sourceId));
  if (note !== undefined) faults.note('note', noteFault(note));
  faults.refuseIfAny();
  return {
    studioId,
    idempotencyKey: idempotencyKey.toLowerCase(),
    capture: {
      displayName,
      contact: contact as Contact,
      sourceId: sourceId?.toLowerCase() ?? null,
      note: note ?? null,
    },
  };
}

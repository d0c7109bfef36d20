import { displayNameFault, noteFault, uuidFault } from '../../common/rules/field-rules.ts';
import { openClaims } from '../domain/claims.ts';
import type { Clock } from '../domain/clock.ts';
import type { Contact } from '../domain/contact.ts';
import { fingerprintOf } from '../domain/fingerprint.ts';
import type { Lead, LeadStage } from '../domain/lead.ts';
import { newIdAt } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Studio } from '../domain/studio.ts';
import type { CreateLeadOutcome, DirectoryStore, LeadStore } from '../store/store.ts';
import { refusalOfCreation, sourceInvalid } from './create-lead.ts';
import { existingStudio } from './keep-directory.ts';
import { noteContactFault } from './note-contact-fault.ts';

/** How many leads go in one call. */
export const MAX_IMPORTED_AT_ONCE = 100;

/** How far a clock may be behind the one that told when a lead was created; milliseconds. */
const CLOCK_SKEW_MS = 300_000;

/** A lead that came another way, not yet checked. */
export interface LeadImport {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: Contact | undefined;
  readonly sourceId: string | undefined;
  readonly note: string | undefined;
  /** Undefined: one that nobody knows. */
  readonly stage: LeadStage | undefined;
  /** Undefined: now. */
  readonly createdAt: Date | undefined;
  /** Undefined: as it was created. */
  readonly updatedAt: Date | undefined;
}

/** What became of one. */
export type ImportedLead = { readonly leadId: string; readonly replayed: boolean } | { readonly refusal: Refusal };

interface ImportDependencies {
  readonly store: Pick<LeadStore, 'createLead'> & Pick<DirectoryStore, 'findStudio' | 'findLeadSource'>;
  readonly clock: Clock;
}

/**
 * Writes leads that came another way or from before, each on its own as a creation is: its key decides, and an open one holds its
 * contact.
 *
 * @returns what became of each, in their order
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, for all of them
 */
export async function importLeads(
  { store, clock }: ImportDependencies,
  { studioId, leads }: { readonly studioId: string; readonly leads: readonly LeadImport[] },
): Promise<ImportedLead[]> {
  const faults = new Faults();
  if (leads.length === 0 || leads.length > MAX_IMPORTED_AT_ONCE) {
    faults.note('leads', `must have 1 to ${MAX_IMPORTED_AT_ONCE} elements`);
  }
  const studio = await existingStudio(store, studioId, faults);
  const now = clock();
  return Promise.all(
    leads.map((lead) =>
      importLead(studio, lead).catch((error) => {
        if (error instanceof Refusal) return { refusal: error };
        throw error;
      }),
    ),
  );

  async function importLead(studio: Studio, asked: LeadImport): Promise<ImportedLead> {
    const { idempotencyKey, lead } = checked(asked, studio.id, now);
    if (lead.sourceId !== null && !(await store.findLeadSource(studio.id, lead.sourceId))) throw sourceInvalid();
    // So that ids sort by creation.
    const id = newIdAt(lead.createdAt);
    const claims = { idempotencyKey, fingerprint: fingerprintOf(lead), ...openClaims(lead.contact, studio) };
    return resultOf(await store.createLead({ ...lead, id }, claims, now));
  }
}

function resultOf(outcome: CreateLeadOutcome): ImportedLead {
  switch (outcome.kind) {
    case 'created':
    case 'replayed':
      return { leadId: outcome.lead.id, replayed: outcome.kind === 'replayed' };
    default:
      throw refusalOfCreation(outcome);
  }
}

function checked(asked: LeadImport, studioId: string, now: Date): { idempotencyKey: string; lead: Omit<Lead, 'id'> } {
  const { idempotencyKey, displayName, contact, sourceId, note, stage } = asked;
  const createdAt = asked.createdAt ?? now;
  const updatedAt = asked.updatedAt ?? createdAt;
  const latest = new Date(now.getTime() + CLOCK_SKEW_MS);
  const faults = new Faults();
  faults.note('idempotencyKey', uuidFault(idempotencyKey));
  faults.note('displayName', displayNameFault(displayName));
  noteContactFault(faults, 'contact', contact);
  if (sourceId !== undefined) faults.note('sourceId', uuidFault(sourceId));
  if (note !== undefined) faults.note('note', noteFault(note));
  if (!stage) faults.note('stage', 'must be a known stage');
  if (!(createdAt >= new Date(0) && createdAt <= latest)) faults.note('createTime', 'must be a time from 1970 to now');
  if (!(updatedAt >= createdAt && updatedAt <= latest))
    faults.note('updateTime', 'must be a time from createTime to now');
  faults.refuseIfAny();
  return {
    idempotencyKey: idempotencyKey.toLowerCase(),
    lead: {
      studioId,
      displayName,
      contact: contact as Contact,
      sourceId: sourceId?.toLowerCase() ?? null,
      note: note ?? null,
      stage: stage as LeadStage,
      createdAt,
      updatedAt,
    },
  };
}

import { crmIdFault, isCanonicalUuid } from '../../common/rules/field-rules.ts';
import type { Requester } from '../domain/audit.ts';
import type { Contact } from '../domain/contact.ts';
import { MAX_LEADS_PER_CONTACT } from '../domain/lead.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults } from '../domain/refusal.ts';
import { type DirectoryStore, type LeadErasureStore, type LeadStore, UnreadableRecord } from '../store/store.ts';
import { leadsOf } from './find-leads.ts';
import { noteContactFault } from './note-contact-fault.ts';

interface ErasureDependencies {
  readonly store: Pick<LeadStore, 'findLeadsOfContact'> & Pick<DirectoryStore, 'findStudio'> & LeadErasureStore;
  readonly clock: Clock;
}

/** A request to erase all leads of a contact, not yet checked. */
export interface EraseContactCommand extends Requester {
  readonly studioId: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
}

export interface ErasedContact {
  /** The number of leads that this call erased. */
  readonly erasedCount: number;
  /** Whether leads of the contact may remain: as for FoundLeads, or the contact had too many leads for one call. */
  readonly mayBeIncomplete: boolean;
  /** The number of leads that cannot be erased, because they cannot be read. */
  readonly skippedCount: number;
}

/** The number of leads that are erased concurrently. */
const MAX_CONCURRENT = 100;

/**
 * Erases all leads of a contact in a studio: closed ones too, and those that had it before a correction, because what
 * the lead was created with is kept. An interrupted call can be repeated.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function eraseContact(
  { store, clock }: ErasureDependencies,
  { studioId, contact, memberId, caller }: EraseContactCommand,
): Promise<ErasedContact> {
  const faults = new Faults();
  if (memberId !== undefined) faults.note('memberId', crmIdFault(memberId));
  faults.note('studioId', crmIdFault(studioId));
  noteContactFault(faults, 'contact', contact);
  faults.refuseIfAny();
  /** The leads that cannot be erased, because even their stage or times are unreadable. */
  const skipped = new Set<string>();
  for (let erasedCount = 0; ; ) {
    // Erased leads are no longer found.
    const found = await leadsOf(store, studioId, contact as Contact, 'former');
    const { leads, mayBeIncomplete } = found;
    const unreadable = found.unreadable.filter((id) => !skipped.has(id));
    const isEnough = erasedCount >= MAX_LEADS_PER_CONTACT;
    if (leads.length + unreadable.length === 0 || isEnough) {
      return {
        erasedCount,
        mayBeIncomplete: mayBeIncomplete || isEnough || skipped.size > 0,
        skippedCount: skipped.size,
      };
    }
    const erased = await Promise.all([
      // A lead that has changed since it was found is searched for again: its contact may be another one.
      ...leads.slice(0, MAX_CONCURRENT).map(({ id, updatedAt }) => erase(id, updatedAt)),
      ...unreadable.slice(0, MAX_CONCURRENT).map((id) => erase(id)),
    ]);
    erasedCount += erased.filter(Boolean).length;
  }

  /** Returns whether a lead was erased now. */
  async function erase(leadId: string, expectedUpdatedAt?: Date): Promise<boolean> {
    if (!isCanonicalUuid(leadId)) {
      skipped.add(leadId);
      return false;
    }
    const which = { studioId, leadId, memberId: memberId ?? null, caller, now: clock() };
    try {
      const { kind } = await store.eraseLead({ ...which, ...(expectedUpdatedAt && { expectedUpdatedAt }) });
      return kind === 'erased';
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      skipped.add(leadId);
      return false;
    }
  }
}

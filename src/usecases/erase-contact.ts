import { crmIdFault, PAGE_SIZE } from '../../common/rules/field-rules.ts';
import type { Requester } from '../domain/audit.ts';
import type { Clock } from '../domain/clock.ts';
import type { Contact } from '../domain/contact.ts';
import { MAX_LEADS_PER_CONTACT } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import type { DirectoryStore, LeadErasureStore, LeadStore } from '../store/store.ts';
import { findLeads } from './find-leads.ts';
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
}

/**
 * Erases all leads of a contact in a studio, closed ones too. An interrupted call can be repeated.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function eraseContact(
  { store, clock }: ErasureDependencies,
  { studioId, contact, memberId, caller }: EraseContactCommand,
): Promise<ErasedContact> {
  const faults = new Faults();
  if (memberId !== undefined) faults.note('memberId', crmIdFault(memberId));
  noteContactFault(faults, 'contact', contact);
  faults.refuseIfAny();
  for (let erasedCount = 0; ; ) {
    // Erased leads are no longer found, so the first page always has the remaining ones.
    const page = { pageSize: PAGE_SIZE.max, pageToken: '' };
    const { leads, mayBeIncomplete } = await findLeads({ store }, { studioId, contact, ...page });
    const isEnough = erasedCount >= MAX_LEADS_PER_CONTACT;
    if (leads.length === 0 || isEnough) return { erasedCount, mayBeIncomplete: mayBeIncomplete || isEnough };
    const outcomes = await Promise.all(
      // A lead that has changed since it was found is searched for again: its contact may be another one.
      leads.map(({ id: leadId, updatedAt: expectedUpdatedAt }) =>
        store.eraseLead({ studioId, leadId, memberId: memberId ?? null, caller, now: clock(), expectedUpdatedAt }),
      ),
    );
    erasedCount += outcomes.filter(({ kind }) => kind === 'erased').length;
  }
}

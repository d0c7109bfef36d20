import { crmIdFault, PAGE_SIZE } from '../../common/rules/field-rules.ts';
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
export interface EraseContactCommand {
  readonly studioId: string;
  /** Undefined: one that is neither an e-mail address nor a phone number. */
  readonly contact: Contact | undefined;
  readonly memberId?: string | undefined;
  /** By which program; undefined: it has no name. */
  readonly caller?: string | null | undefined;
}

/** What became of it. */
export interface ErasedContact {
  /** How many leads are erased now. */
  readonly erasedCount: number;
  /** Whether there may be more: then it is to be done again, later where claims are being made anew. */
  readonly mayBeIncomplete: boolean;
}

/**
 * Erases every lead of a contact in a studio, closed ones too; broken off, it is done again.
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
    // Those that were erased are not found any more, so the first page always has the next.
    const { leads, mayBeIncomplete } = await findLeads(
      { store },
      {
        studioId,
        contact,
        pageSize: PAGE_SIZE.max,
        pageToken: '',
      },
    );
    const isEnough = erasedCount >= MAX_LEADS_PER_CONTACT;
    if (leads.length === 0 || isEnough) return { erasedCount, mayBeIncomplete: mayBeIncomplete || isEnough };
    const outcomes = await Promise.all(
      // One that got another contact since it was found is looked for again.
      leads.map(({ id: leadId, updatedAt: expectedUpdatedAt }) =>
        store.eraseLead({ studioId, leadId, memberId: memberId ?? null, caller, now: clock(), expectedUpdatedAt }),
      ),
    );
    erasedCount += outcomes.filter(({ kind }) => kind === 'erased').length;
  }
}

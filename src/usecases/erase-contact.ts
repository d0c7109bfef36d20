import { PAGE_SIZE } from '../../common/rules/field-rules.ts';
import type { Clock } from '../domain/clock.ts';
import type { Contact } from '../domain/contact.ts';
import { MOST_LEADS_OF_CONTACT } from '../domain/lead.ts';
import type { DirectoryStore, LeadErasureStore, LeadStore } from '../store/store.ts';
import { eraseLead } from './erase-lead.ts';
import { findLeads } from './find-leads.ts';

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
  deps: ErasureDependencies,
  { studioId, contact, memberId }: EraseContactCommand,
): Promise<ErasedContact> {
  for (let erasedCount = 0; ; ) {
    // Those that were erased are not found any more, so the first page always has the next.
    const { leads, mayBeIncomplete } = await findLeads(deps, {
      studioId,
      contact,
      pageSize: PAGE_SIZE.max,
      pageToken: '',
    });
    const isEnough = erasedCount >= MOST_LEADS_OF_CONTACT;
    if (leads.length === 0 || isEnough) return { erasedCount, mayBeIncomplete: mayBeIncomplete || isEnough };
    await Promise.all(leads.map(({ id: leadId }) => eraseLead(deps, { studioId, leadId, memberId })));
    erasedCount += leads.length;
  }
}

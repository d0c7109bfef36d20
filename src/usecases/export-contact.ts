import type { Contact } from '../domain/contact.ts';
import { noteContactFault } from '../domain/lead-data.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadRecord } from '../store/port/lead-reads.ts';
import type { Reading } from './dependencies.ts';
import { findContactLeads } from './read-leads.ts';
import { existingStudio } from './studios.ts';

/** What there is to know of an export of a contact once all leads were sent. */
export interface ContactExported {
  /** As for FoundLeads. */
  readonly mayBeIncomplete: boolean;
  /** The number of leads that cannot be read. */
  readonly skippedCount: number;
}

/**
 * Yields all that is kept of a person, one lead at a time, oldest first: of a contact in a studio, with leads that had it
 * before a correction. In the end it yields whether that is all.
 *
 * @param contact undefined: neither an email address nor a phone number
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function* exportContact(
  { store }: Reading,
  { studioId, contact }: { readonly studioId: string; readonly contact: Contact | undefined },
): AsyncGenerator<LeadRecord | ContactExported> {
  const faults = new Faults();
  noteContactFault(faults, 'contact', contact);
  await existingStudio(store, studioId, faults);
  const found = await findContactLeads(store, studioId, contact as Contact, 'former');
  let skippedCount = found.unreadable.length;
  for (const id of found.leads.map((lead) => lead.id).toSorted()) {
    const record = await store.findLeadRecord(studioId, id);
    if (record === 'unreadable') skippedCount += 1;
    // Null: it was erased meanwhile.
    else if (record) yield record;
  }
  yield { mayBeIncomplete: found.mayBeIncomplete || skippedCount > 0, skippedCount };
}

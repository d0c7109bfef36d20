import type { Contact } from '../domain/contact.ts';
import { noteContactFault } from '../domain/lead-data.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadRecord } from '../store/port/lead-reads.ts';
import type { Reading } from './dependencies.ts';
import { findContactLeads } from './read-leads.ts';
import { existingStudio } from './studios.ts';

/** The result of an export of a contact, after all its leads. */
export interface ContactExported {
  /** See FoundLeads. */
  readonly mayBeIncomplete: boolean;
  /** The number of unreadable leads. */
  readonly skippedCount: number;
}

/**
 * Yields all data about a contact in a studio, one lead at a time, oldest first. It includes leads that had the contact
 * before a correction. The last element tells whether the export is complete.
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

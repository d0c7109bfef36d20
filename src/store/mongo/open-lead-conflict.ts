import type { Collection } from 'mongodb';
import { UnreadableRecord } from '../store.ts';
import { type LeadDocument, type LeadKey, leadOf, openClaim, WITHOUT_HISTORY } from './documents.ts';

type AlreadyOpen = { readonly kind: 'already-open'; readonly leadId: string };

/** The outcome for a lead that has the contact already; only its id must be readable. */
export function alreadyOpen(holder: LeadDocument): AlreadyOpen {
  const lead = leadOf(holder);
  if (lead instanceof UnreadableRecord && lead.field === 'id') throw lead;
  return { kind: 'already-open', leadId: lead.id };
}

/** Returns the outcome for another open lead that has one of the keys; undefined: there is none (any more). */
export async function otherOpenLead(
  leads: Collection<LeadDocument>,
  { studioId, id }: LeadKey,
  contactKeys: readonly string[],
): Promise<AlreadyOpen | undefined> {
  const openContactKey = { $in: contactKeys.map(openClaim) };
  // The lead itself may have some of them, by this change or a concurrent one.
  const found = await leads.find({ studioId, openContactKey }, WITHOUT_HISTORY).toArray();
  const holder = found.find(({ _id }) => !id.equals(_id.id));
  return holder && alreadyOpen(holder);
}

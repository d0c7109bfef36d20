import type { Collection } from 'mongodb';
import type { OpenClaims } from '../../domain/claims.ts';
import type { Checked } from '../checked.ts';
import { UnreadableRecord } from '../store.ts';
import { type LeadDocument, type LeadKey, leadOf, openClaim, WITHOUT_HISTORY } from './documents.ts';

type AlreadyOpen = { readonly kind: 'already-open'; readonly leadId: string };

/** The lead in the way: its id is all that is asked of it. */
export function alreadyOpen(holder: LeadDocument): Checked<AlreadyOpen> {
  const lead = leadOf(holder);
  return lead instanceof UnreadableRecord && lead.field === 'id' ? lead : { kind: 'already-open', leadId: lead.id };
}

/** The lead that was in the way of a change; undefined when nobody else is, by now. */
export async function otherOpenLead(
  leads: Collection<LeadDocument>,
  { studioId, id }: LeadKey,
  { contactKeys }: OpenClaims,
): Promise<Checked<AlreadyOpen> | undefined> {
  const openContactKey = { $in: contactKeys.map(openClaim) };
  // The very lead may have some of them: by its own change of now, or by somebody else's since.
  const found = await leads.find({ studioId, openContactKey }, WITHOUT_HISTORY).toArray();
  const holder = found.find(({ _id }) => !id.equals(_id.id));
  return holder && alreadyOpen(holder);
}

import { crmIdFault, isCanonicalUuid, uuidFault } from '../../common/rules/field-rules.ts';
import type { Actor, Requester } from '../domain/audit.ts';
import type { Contact } from '../domain/contact.ts';
import { type ErasedLead, isOpen, type Lead, type LeadOfStudio, MAX_LEADS_PER_CONTACT } from '../domain/lead.ts';
import { noteContactFault } from '../domain/lead-data.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { UnreadableRecord } from '../store/port/faults.ts';
import type { EraseLeadOutcome, LeadErasure } from '../store/port/lead-erasure.ts';
import type { Store } from '../store/store.ts';
import type { Changing, Reading } from './dependencies.ts';
import { findContactLeads } from './read-leads.ts';
import { eachStoredPage, noteRequester, requestedBy } from './requests.ts';
import { studioIds } from './studios.ts';

/**
 * Erases the personal data of a lead. Erasing an erased lead changes nothing and returns it.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 */
export async function eraseLead(
  { store, clock }: Changing,
  { studioId, leadId, ...by }: Requester & LeadOfStudio,
): Promise<ErasedLead> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  noteRequester(faults, by);
  faults.refuseIfAny();
  const outcome = await store.eraseLead({ studioId, leadId: leadId.toLowerCase(), ...requestedBy(by, clock) });
  if (outcome.kind !== 'erased') throw new Refusal('LEAD_NOT_FOUND');
  return outcome.lead;
}

export interface EraseContactCommand extends Requester {
  readonly studioId: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
}

export interface ErasedContact {
  /** The number of leads that this call erased. */
  readonly erasedCount: number;
  /** Whether leads of the contact may remain: see FoundLeads, or the contact has too many leads for one call. */
  readonly mayBeIncomplete: boolean;
  /** The number of leads that cannot be erased, because they are unreadable. */
  readonly skippedCount: number;
}

/** The number of leads that are erased concurrently. */
const MAX_CONCURRENT = 100;

/**
 * Erases all leads of a contact in a studio. This includes closed leads, and leads that had the contact before a
 * correction, because those keep their original texts. An interrupted call can be repeated.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function eraseContact(
  { store, clock }: Changing,
  { studioId, contact, ...by }: EraseContactCommand,
): Promise<ErasedContact> {
  const faults = new Faults();
  noteRequester(faults, by);
  faults.note('studioId', crmIdFault(studioId));
  noteContactFault(faults, 'contact', contact);
  faults.refuseIfAny();
  /** Leads that cannot be erased, because even their stage or times are unreadable. */
  const skipped = new Set<string>();
  for (let erasedCount = 0; ; ) {
    // A search no longer finds erased leads.
    const found = await findContactLeads(store, studioId, contact as Contact, 'former');
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
      // A lead that has changed since the search is searched for again, because its contact may differ.
      ...leads.slice(0, MAX_CONCURRENT).map(({ id, updatedAt }) => erase(id, updatedAt)),
      ...unreadable.slice(0, MAX_CONCURRENT).map((id) => erase(id)),
    ]);
    erasedCount += erased.filter(Boolean).length;
  }

  async function erase(leadId: string, expectedUpdatedAt?: Date): Promise<boolean> {
    if (!isCanonicalUuid(leadId)) {
      skipped.add(leadId);
      return false;
    }
    const erasure = { studioId, leadId, ...requestedBy(by, clock) };
    const outcome = await eraseReadable(store, { ...erasure, ...(expectedUpdatedAt && { expectedUpdatedAt }) });
    if (outcome.kind === 'unreadable') skipped.add(leadId);
    return isNewErasure(outcome);
  }
}

type Erased = EraseLeadOutcome | { readonly kind: 'unreadable' };

/** Erases a lead unless even its stage or times are unreadable. */
export const eraseReadable = (store: Store, erasure: LeadErasure): Promise<Erased> =>
  store.eraseLead(erasure).catch((error) => {
    if (error instanceof UnreadableRecord) return { kind: 'unreadable' } as const;
    throw error;
  });

export const isNewErasure = (outcome: Erased): boolean => outcome.kind === 'erased' && outcome.isNew;

/** The number of leads that are read at a time and erased concurrently. */
const MAX_LEADS_PER_PAGE = 100;

export interface ClosedLeads {
  /** Undefined: all studios. */
  readonly studioId: string | undefined;
  readonly before: Date;
}

export async function countClosedLeads({ store }: Reading, which: ClosedLeads): Promise<number> {
  let count = 0;
  for await (const leads of walkClosedLeads(store, which)) count += leads.length;
  return count;
}

/**
 * Erases the selected leads. An interrupted run can be repeated, because erased leads are skipped.
 *
 * @param onProgress called with the number of leads erased so far
 * @returns the number of leads erased
 */
export async function eraseClosedLeads(
  { store, clock }: Changing,
  which: ClosedLeads & Actor,
  onProgress: (count: number) => void,
): Promise<number> {
  let count = 0;
  for await (const leads of walkClosedLeads(store, which)) {
    const outcomes = await Promise.all(
      // A lead that was reopened or corrected since the read is no longer selected.
      leads.map(({ studioId, id: leadId, updatedAt: expectedUpdatedAt }) =>
        store.eraseLead({ studioId, leadId, ...requestedBy(which, clock), expectedUpdatedAt }),
      ),
    );
    count += outcomes.filter(isNewErasure).length;
    onProgress(count);
  }
  return count;
}

async function* walkClosedLeads(store: Reading['store'], { studioId, before }: ClosedLeads): AsyncGenerator<Lead[]> {
  for await (const id of studioIds({ store }, studioId)) {
    for await (const { records } of eachStoredPage((after) => store.walkLeads(id, after, MAX_LEADS_PER_PAGE))) {
      yield records.filter(({ stage, updatedAt }) => !isOpen(stage) && updatedAt < before);
    }
  }
}

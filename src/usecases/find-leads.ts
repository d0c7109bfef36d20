import { crmIdFault } from '../../common/rules/field-rules.ts';
import { type Contact, mayHaveOtherKeys, searchKeys } from '../domain/contact.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import { isOpen, type Lead, MAX_LEADS_PER_CONTACT } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import type { DirectoryStore, LeadStore } from '../store/store.ts';
import { regionsOf } from './keep-directory.ts';
import { type LeadPage, pageLimit } from './list-leads.ts';
import { noteContactFault } from './note-contact-fault.ts';

/** A request for one page of a contact's leads, not yet checked. */
export interface FindLeadsQuery {
  readonly studioId: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
  /** 0: the default size. Above the maximum: the maximum. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
}

/** One page of a contact's leads. */
export interface FoundLeads extends LeadPage {
  /** Whether leads may be missing: see mayHaveOtherKeys; or the contact has too many leads, or unreadable ones. */
  readonly mayBeIncomplete: boolean;
}

type SearchStore = Pick<LeadStore, 'findLeadsOfContact'> & Pick<DirectoryStore, 'findStudio'>;

/** Higher than every lead's id: the page after the open leads then begins with the newest closed one. */
const AFTER_ALL_IDS = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Finds a studio's leads of a contact, by the keys that these may have been opened with: open leads first, then closed ones, newest first.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function findLeads(
  { store }: { readonly store: SearchStore },
  { studioId, contact, pageSize, pageToken }: FindLeadsQuery,
): Promise<FoundLeads> {
  const scope = `${studioId} ${contact?.type} ${contact?.value}`;
  const before = pageToken === '' ? null : idBeforePage('leadsOfContact', scope, pageToken);
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  noteContactFault(faults, 'contact', contact);
  faults.note('pageSize', pageSize < 0 ? 'must not be negative' : undefined);
  if (before === undefined) faults.note('pageToken', 'must be unchanged, of this studio and contact');
  faults.refuseIfAny();

  const { leads, unreadable, mayBeIncomplete } = await leadsOf(store, studioId, contact as Contact);
  const found = leads.toSorted(newestFirst);
  // The first page has all open leads.
  const open = before === null ? found.filter(({ stage }) => isOpen(stage)) : [];
  const closed = found.filter(({ id, stage }) => !isOpen(stage) && id < (before ?? AFTER_ALL_IDS));
  const shown = closed.slice(0, Math.max(pageLimit(pageSize) - open.length, 0));
  const last = shown.at(-1)?.id ?? AFTER_ALL_IDS;
  return {
    leads: [...open, ...shown],
    nextPageToken: shown.length < closed.length ? pageTokenAfter('leadsOfContact', scope, last) : '',
    mayBeIncomplete: mayBeIncomplete || unreadable.length > 0,
    skippedCount: unreadable.length,
  };
}

/**
 * Returns all leads of a contact, and whether others may exist that were not found.
 *
 * @param former whether to include leads that had the contact before a correction
 */
export async function leadsOf(store: SearchStore, studioId: string, contact: Contact, former?: 'former') {
  const regions = await regionsOf(store, studioId);
  const found = await store.findLeadsOfContact(studioId, searchKeys(contact, regions), former);
  const isCut = found.leads.length + found.unreadable.length >= MAX_LEADS_PER_CONTACT;
  return { ...found, mayBeIncomplete: mayHaveOtherKeys(contact, regions) || isCut };
}

const newestFirst = (a: Lead, b: Lead): number => (a.id < b.id ? 1 : -1);

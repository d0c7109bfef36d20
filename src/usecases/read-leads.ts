import { assert } from '../../common/invariants.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import { type Contact, mayMissLeads, searchKeys } from '../domain/contact.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import { isOpen, type Lead, type LeadOfStudio, type LeadView, MAX_LEADS_PER_CONTACT } from '../domain/lead.ts';
import { noteContactFault } from '../domain/lead-data.ts';
import { type GivenLeadFilter, isByUpdate, parseFilter, toScope } from '../domain/lead-filter.ts';
import { HIGHEST_ID, newestFirst } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Reading } from './dependencies.ts';
import { type PageQuery, startOfPage, tokenAfter } from './requests.ts';
import { findRegions } from './studios.ts';

export interface GetLeadQuery extends LeadOfStudio {
  /** Undefined: unknown. */
  readonly view: LeadView | undefined;
}

/**
 * Reads a lead. Another studio's lead is indistinguishable from one that does not exist.
 *
 * @throws Refusal INVALID_REQUEST, LEAD_NOT_FOUND
 * @rule 1.own-studio 4.2.current-state 4.2.not-found
 */
export async function getLead({ store }: Reading, { view, ...query }: GetLeadQuery): Promise<Lead> {
  const { studioId, leadId } = checkedQuery(query, view);
  const lead = await store.findLead(studioId, leadId);
  if (!lead) throw new Refusal('LEAD_NOT_FOUND');
  assert(lead.studioId === studioId, 'lead_of_studio');
  return lead;
}

/** Returns a lead's PublicLead as JSON. Refuses as getLead does. */
export async function getPublicLead({ store }: Reading, query: LeadOfStudio): Promise<string> {
  const { studioId, leadId } = checkedQuery(query, 'basic');
  const lead = await store.findPublicLead(studioId, leadId);
  if (lead === null) throw new Refusal('LEAD_NOT_FOUND');
  return lead;
}

function checkedQuery({ studioId, leadId }: LeadOfStudio, view: LeadView | undefined): LeadOfStudio {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('leadId', uuidFault(leadId));
  if (!view) faults.note('view', 'must be a known view');
  faults.refuseIfAny();
  return { studioId, leadId: leadId.toLowerCase() };
}

export interface ListLeadsQuery extends PageQuery {
  readonly studioId: string;
  /** Undefined: unknown. */
  readonly view: LeadView | undefined;
  readonly filter?: GivenLeadFilter | undefined;
}

/** A page of leads; the token is empty on the last one. */
export interface LeadPage {
  readonly leads: readonly Lead[];
  readonly nextPageToken: string;
  /** The number of unreadable leads that were left out. */
  readonly skippedCount: number;
}

/**
 * Lists a studio's leads, newest first. Leads created between two requests do not shift pages. With a filter, pages may
 * be short or empty, and isByUpdate decides whether the leads changed last come first.
 *
 * @throws Refusal INVALID_REQUEST
 * @rule 2.4.leads 4.3.limit 4.3.newest-first 4.3.steady 8.leads
 */
export async function listLeads(
  { store }: Reading,
  { studioId, view, filter: given, ...page }: ListLeadsQuery,
): Promise<LeadPage> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  const filter = parseFilter(given, faults);
  const [list, scope] = [isByUpdate(filter, 'newest') ? 'leadsByUpdate' : 'leads', toScope(studioId, filter)] as const;
  const before = startOfPage(faults, page, (token) => idBeforePage(list, scope, token));
  if (!view) faults.note('view', 'must be a known view');
  faults.refuseIfAny();

  const limit = pageLimit(page.pageSize);
  const { records: leads, next, skipped: skippedCount } = await store.listLeads(studioId, before, limit, filter);
  assert(leads.length <= limit, 'page_within_limit');
  assert(
    leads.every((lead) => lead.studioId === studioId),
    'lead_of_studio',
  );
  return { leads, nextPageToken: tokenAfter(list, scope, next), skippedCount };
}

/** Lists leads' PublicLeads as JSON, as listLeads does without a filter. @throws Refusal INVALID_REQUEST */
export async function listPublicLeads(
  { store }: Reading,
  { studioId, ...page }: PageQuery & { readonly studioId: string },
): Promise<{ readonly leads: readonly string[]; readonly nextPageToken: string }> {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  const before = startOfPage(faults, page, (token) => idBeforePage('leads', studioId, token));
  faults.refuseIfAny();
  const { records: leads, next } = await store.listPublicLeads(studioId, before, pageLimit(page.pageSize));
  return { leads, nextPageToken: tokenAfter('leads', studioId, next) };
}

/** Returns the maximum number of leads on a page with a requested size. */
export const pageLimit = (pageSize: number): number =>
  pageSize > 0 ? Math.min(pageSize, PAGE_SIZE.max) : PAGE_SIZE.fallback;

export interface FindLeadsQuery extends PageQuery {
  readonly studioId: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
}

export interface FoundLeads extends LeadPage {
  /** Whether leads may be missing: see mayMissLeads, or the contact has too many leads or unreadable ones. */
  readonly mayBeIncomplete: boolean;
}

/**
 * Finds a studio's leads of a contact by all keys that they may have: open leads first, then closed ones, newest first.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function findLeads(
  { store }: Reading,
  { studioId, contact, ...page }: FindLeadsQuery,
): Promise<FoundLeads> {
  const scope = `${studioId} ${contact?.type} ${contact?.value}`;
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  noteContactFault(faults, 'contact', contact);
  const idIn = (token: string) => idBeforePage('leadsOfContact', scope, token);
  const before = startOfPage(faults, page, idIn, ', of this studio and contact');
  faults.refuseIfAny();

  const { leads, unreadable, mayBeIncomplete } = await findContactLeads(store, studioId, contact as Contact);
  const found = leads.toSorted(newestFirst);
  // The first page has all open leads.
  const open = before === null ? found.filter(({ stage }) => isOpen(stage)) : [];
  const closed = found.filter(({ id, stage }) => !isOpen(stage) && id < (before ?? HIGHEST_ID));
  const shown = closed.slice(0, Math.max(pageLimit(page.pageSize) - open.length, 0));
  // The page after the open leads begins with the newest closed one.
  const last = shown.at(-1)?.id ?? HIGHEST_ID;
  return {
    leads: [...open, ...shown],
    nextPageToken: shown.length < closed.length ? pageTokenAfter('leadsOfContact', scope, last) : '',
    mayBeIncomplete: mayBeIncomplete || unreadable.length > 0,
    skippedCount: unreadable.length,
  };
}

/**
 * Returns all leads of a contact, and whether the search may have missed some.
 *
 * @param former also finds leads that had the contact before a correction
 */
export async function findContactLeads(store: Reading['store'], studioId: string, contact: Contact, former?: 'former') {
  const regions = await findRegions(store, studioId);
  const keys = searchKeys(contact, regions);
  // Keys of release 1.2 may contain all digits, including an extension's. Other contacts may have such keys, too.
  const allDigits = { ...contact, value: contact.value.replace(/[^+\p{Nd}]/gu, '') };
  const ofRelease12 = contact.type === 'phone' ? searchKeys(allDigits, regions) : [];
  const now = await store.findLeadsOfContact(studioId, [...new Set([...keys, ...ofRelease12])]);
  const once = former && (await store.findLeadsOfContact(studioId, keys, former));
  const same = now.leads.filter((lead) => searchKeys(lead.contact, regions).some((key) => keys.includes(key)));
  const leads = new Map([...same, ...(once?.leads ?? [])].map((lead) => [lead.id, lead]));
  const unreadable = new Set([...now.unreadable, ...(once?.unreadable ?? [])]);
  const isCut = [now, once].some(
    (found) => found && found.leads.length + found.unreadable.length >= MAX_LEADS_PER_CONTACT,
  );
  return {
    leads: [...leads.values()],
    unreadable: [...unreadable],
    mayBeIncomplete: mayMissLeads(contact, regions) || isCut,
  };
}

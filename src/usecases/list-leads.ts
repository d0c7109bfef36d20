import { assert } from '../../common/invariants.ts';
import { crmIdFault, PAGE_SIZE, pageTokenFault } from '../../common/rules/field-rules.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import type { Lead, LeadView } from '../domain/lead.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadStore } from '../store/store.ts';

/** A request for one page, not yet checked. */
export interface ListLeadsQuery {
  readonly studioId: string;
  /** 0: the default size. Above the maximum: the maximum. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
  /** Undefined: unknown. */
  readonly view: LeadView | undefined;
}

/** One page; the token is empty on the last one. */
export interface LeadPage {
  readonly leads: readonly Lead[];
  readonly nextPageToken: string;
  /** The number of unreadable leads that were left out. */
  readonly skippedCount: number;
}

/**
 * Lists a studio's leads, newest first. Leads created between two requests do not shift pages.
 *
 * @throws Refusal INVALID_REQUEST
 * @rule 2.4.leads 4.3.limit 4.3.newest-first 4.3.steady 8.leads
 */
export async function listLeads(
  { store }: { readonly store: Pick<LeadStore, 'listLeads'> },
  { studioId, pageSize, pageToken, view }: ListLeadsQuery,
): Promise<LeadPage> {
  const before = pageToken === '' ? null : idBeforePage('leads', studioId, pageToken);
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  faults.note('pageSize', pageSize < 0 ? 'must not be negative' : undefined);
  if (before === undefined)
    faults.note('pageToken', pageTokenFault(pageToken) ?? 'must be unchanged, from this studio');
  if (!view) faults.note('view', 'must be a known view');
  faults.refuseIfAny();

  const limit = pageLimit(pageSize);
  const { records: leads, next, skipped: skippedCount } = await store.listLeads(studioId, before ?? null, limit);
  assert(leads.length <= limit, 'page_within_limit');
  assert(
    leads.every((lead) => lead.studioId === studioId),
    'lead_of_studio',
  );
  return { leads, nextPageToken: next === null ? '' : pageTokenAfter('leads', studioId, next), skippedCount };
}

/** Returns the maximum number of leads on a page of a requested size. */
export const pageLimit = (pageSize: number): number =>
  pageSize > 0 ? Math.min(pageSize, PAGE_SIZE.max) : PAGE_SIZE.fallback;

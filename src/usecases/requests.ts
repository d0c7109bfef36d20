import { assert } from '../../common/invariants.ts';
import { crmIdFault, pageTokenFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { Actor, AuditContext, Requester } from '../domain/audit.ts';
import { idBeforePage, type ListName, pageTokenAfter } from '../domain/cursor.ts';
import { countBytes, type Enquiry } from '../domain/enquiry.ts';
import type { Clock } from '../domain/new-id.ts';
import type { Faults } from '../domain/refusal.ts';

/*
 * What is called a command or a query in this folder is a request that is not yet checked. A use case notes all that is wrong
 * with it, and refuses it at once for all of that.
 */

/** Notes the faults of who requests an action, and of the request's id. @param member the field that names the member */
export function noteRequester(
  faults: Faults,
  { memberId, requestId }: Pick<Requester, 'memberId' | 'requestId'>,
  member = 'memberId',
): void {
  if (memberId !== undefined) faults.note(member, crmIdFault(memberId));
  if (requestId !== undefined) faults.note('requestId', uuidFault(requestId));
}

/** Returns who requests a change, and when, as its event has it. @param requestId the identity of the request, if it may be repeated */
export const requestedBy = (
  { memberId = null, caller, callId }: Partial<Actor> | Requester,
  clock: Clock,
  requestId?: string,
): AuditContext => ({ memberId, caller, callId, now: clock(), requestId });

/** The maximum number of leads that a call names, or marks. */
export const MAX_LEADS_PER_CALL = 500;

export function noteLeadIds(faults: Faults, leadIds: readonly string[]): void {
  faults.noteEach('leadIds', leadIds, MAX_LEADS_PER_CALL, (leadId) => ({ '': uuidFault(leadId) }));
}

/** Which page of a list; not yet checked. */
export interface PageQuery {
  /** 0: the default size. Sizes outside of the list's bounds count as the nearest bound. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
}

/** Returns the position that a page follows; null: it is the first one. Notes what is wrong with the query. */
export function startOfPage(
  list: ListName,
  scope: string,
  { pageSize, pageToken }: PageQuery,
  faults: Faults,
): string | null {
  const id = pageToken === '' ? null : idBeforePage(list, scope, pageToken);
  notePageFaults(faults, { pageSize, pageToken }, id, 'must be unchanged, from this studio');
  return id ?? null;
}

/** @param position undefined: the token was not issued for this list */
export function notePageFaults(
  faults: Faults,
  { pageSize, pageToken }: PageQuery,
  position: unknown,
  unknownToken: string,
): void {
  if (pageSize < 0) faults.note('pageSize', 'must not be negative');
  if (position === undefined) faults.note('pageToken', pageTokenFault(pageToken) ?? unknownToken);
}

/** Returns the token of the page after an id; empty: there is none. */
export const tokenAfter = (list: ListName, scope: string, id: string | null): string =>
  id === null ? '' : pageTokenAfter(list, scope, id);

/** Yields the pages of a list of the store from a position on, each with that position, as they are requested. */
export async function* eachStoredPage<Page extends { readonly next: string | null }>(
  read: (after: string | null) => Promise<Page>,
  first: string | null = null,
): AsyncGenerator<Page & { readonly after: string | null }> {
  for (let after = first; ; ) {
    const page = await read(after);
    yield { ...page, after };
    if (page.next === null) return;
    assert(page.next !== after, 'page_moves');
    after = page.next;
  }
}

/** The bytes of enquiries with which a part of a response ends. With these and its leads it has less than 4 MiB. */
const PART_BYTES = 1024 * 1024;

/**
 * Splits records into parts for one message each.
 *
 * @param most the maximum number of a part
 */
export function* splitIntoParts<Record>(
  records: readonly Record[],
  most: number,
  readEnquiries: (record: Record) => readonly Enquiry[] | undefined,
): Generator<readonly Record[]> {
  let begin = 0;
  let bytes = 0;
  for (const [index, record] of records.entries()) {
    const enquiries = readEnquiries(record);
    const size = enquiries ? countBytes(enquiries) : 0;
    if (index > begin && (index - begin === most || bytes + size > PART_BYTES)) {
      yield records.slice(begin, index);
      [begin, bytes] = [index, 0];
    }
    bytes += size;
  }
  if (begin < records.length) yield records.slice(begin);
}

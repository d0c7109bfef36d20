import { assert } from '../../common/invariants.ts';
import { crmIdFault, pageTokenFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { Actor, AuditContext, Requester } from '../domain/audit.ts';
import { type ListName, pageTokenAfter } from '../domain/cursor.ts';
import { countBytes, type Enquiry } from '../domain/enquiry.ts';
import type { Clock } from '../domain/new-id.ts';
import type { Faults } from '../domain/refusal.ts';

/*
 * Commands and queries in this folder are unchecked requests. A use case collects all faults of a request, and refuses it
 * once with all of them.
 */

/** Notes the faults of a requester and of the request's id. @param memberField the field that names the member */
export function noteRequester(faults: Faults, { memberId, requestId }: Requester, memberField = 'memberId'): void {
  if (memberId !== undefined) faults.note(memberField, crmIdFault(memberId));
  if (requestId !== undefined) faults.note('requestId', uuidFault(requestId));
}

/** Returns who requests a change and when, for its event. @param requestId the identity of the request, if it may be repeated */
export const requestedBy = (
  { memberId = null, caller, callId }: Actor | Requester,
  clock: Clock,
  requestId?: string,
): AuditContext => ({ memberId, caller, callId, now: clock(), requestId });

/** The maximum number of leads that a call names or resends. */
export const MAX_LEADS_PER_CALL = 500;

export function noteLeadIds(faults: Faults, leadIds: readonly string[]): void {
  faults.noteEach('leadIds', leadIds, MAX_LEADS_PER_CALL, (leadId) => ({ '': uuidFault(leadId) }));
}

/** The unchecked choice of a page. */
export interface PageQuery {
  /** 0: the default size. Negative sizes are refused, others clamped to the list's bounds. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
}

/** Returns the position before a page; null: it is the first page. Notes the faults of the query. */
export function startOfPage<Position>(
  faults: Faults,
  { pageSize, pageToken }: PageQuery,
  positionIn: (pageToken: string) => Position | undefined,
  issued = ', from this studio',
): Position | null {
  if (pageSize < 0) faults.note('pageSize', 'must not be negative');
  if (pageToken === '') return null;
  const position = positionIn(pageToken);
  if (position === undefined) faults.note('pageToken', pageTokenFault(pageToken) ?? `must be unchanged${issued}`);
  return position ?? null;
}

/** Returns the token of the page after an id; empty: there is none. */
export const tokenAfter = (list: ListName, scope: string, id: string | null): string =>
  id === null ? '' : pageTokenAfter(list, scope, id);

/** Yields the pages of a stored list from a position on, each with the position before it. */
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

/** The maximum bytes of enquiries in a part of a response, so that the part with its leads has less than 4 MiB. */
const PART_BYTES = 1024 * 1024;

/** Splits records into parts for one message each. @param most the maximum number in a part */
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

import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type AuditEvent, OF_DEPLOYMENT, type Requester, requestIdentity } from '../domain/audit.ts';
import { isRegionCode, type RegionCode, type StudioRegions } from '../domain/contact.ts';
import { studioBeforePage, studioTokenAfter } from '../domain/cursor.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { quotaLimitFault, retentionDaysFault, type Studio } from '../domain/studio.ts';
import type { Changing, Reading } from './dependencies.ts';
import { eachStoredPage, noteRequester, type PageQuery, requestedBy, startOfPage } from './requests.ts';

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

export interface PutStudioCommand extends Requester {
  readonly id: string;
  /** Undefined: unknown. */
  readonly status: Studio['status'] | 'unchanged' | undefined;
  /** Null: removes the region; undefined: unchanged. */
  readonly regionCode: string | null | undefined;
  /** Null: the gateways' default; undefined: unchanged. */
  readonly quotaLimit?: number | null | undefined;
  /** Undefined: unchanged. */
  readonly keepEnquiries?: boolean | undefined;
  /** Undefined: unchanged; a new studio is not a test studio. */
  readonly isTest?: boolean | undefined;
  /** Null: no retention; undefined: unchanged. */
  readonly retentionDays?: number | null | undefined;
}

/** @throws Refusal STUDIO_ENDED; INVALID_REQUEST, including a new studio without a status */
export async function putStudio({ store, clock }: Changing, command: PutStudioCommand | undefined): Promise<Studio> {
  const faults = new Faults();
  const idFault = crmIdFault(command?.id ?? '');
  faults.note('studio.id', idFault);
  // A studio with an invalid id does not exist, so it has no status to keep.
  const keepsStatus = command?.status === 'unchanged' && idFault === undefined;
  if (!keepsStatus && command?.status !== 'active' && command?.status !== 'suspended') {
    faults.note('studio.status', 'must be given');
  }
  const regionCode = command?.regionCode;
  if (typeof regionCode === 'string' && !isRegionCode(regionCode)) {
    faults.note('studio.regionCode', 'must be two capital letters of a region that has phone numbers');
  }
  if (typeof command?.quotaLimit === 'number') faults.note('studio.quotaLimit', quotaLimitFault(command.quotaLimit));
  const days = command?.retentionDays;
  if (typeof days === 'number') faults.note('studio.retentionDays', retentionDaysFault(days));
  noteRequester(faults, command ?? {});
  faults.refuseIfAny();
  const { id, status, quotaLimit, keepEnquiries, isTest, ...requester } = command as PutStudioCommand;
  const put = {
    id,
    status: status === 'unchanged' ? undefined : status,
    regionCode: regionCode as RegionCode | null | undefined,
    quotaLimit,
    keepEnquiries,
    isTest,
    retentionDays: days,
    // The clock of this process may be behind.
    graceFrom: typeof days === 'number' ? (await store.findRetentionTime())?.time : null,
  };
  const requestId = requestIdentity(command?.requestId, 'put studio', id);
  const outcome = await store.putStudio(put, requestedBy(requester, clock, requestId));
  if (outcome.kind === 'put') return outcome.studio;
  if (outcome.kind === 'ended') throw new Refusal('STUDIO_ENDED');
  if (outcome.kind === 'not-found') faults.note('studio.status', 'must be given for a new studio');
  else faults.note('studio.isTest', 'must stay as it was when the studio was created');
  throw faults.refusal();
}

/** The maximum number of leads that a call deletes. */
const MAX_DELETED = 500;

/** Deletes leads of a test studio. @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, NOT_A_TEST_STUDIO */
export async function emptyStudio(
  { store, clock }: Changing,
  { studioId, ...by }: Requester & { readonly studioId: string },
): Promise<{ readonly deletedLeadCount: number; readonly isEmpty: boolean }> {
  const { isTest } = await existingStudio(store, studioId, new Faults());
  if (!isTest) throw new Refusal('NOT_A_TEST_STUDIO');
  const deletedLeadCount = await store.deleteLeads(studioId, MAX_DELETED, requestedBy(by, clock));
  const isEmpty = deletedLeadCount < MAX_DELETED;
  if (isEmpty) await store.removeRequests(studioId);
  return { deletedLeadCount, isEmpty };
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export function getStudio({ store }: Reading, studioId: string): Promise<Studio> {
  return existingStudio(store, studioId, new Faults());
}

/** Lists all studios, by id. @returns one page; the token is empty on the last one @throws Refusal INVALID_REQUEST */
export async function listStudios(
  { store }: Reading,
  { pageSize, pageToken }: PageQuery,
): Promise<{ readonly studios: readonly Studio[]; readonly nextPageToken: string }> {
  const faults = new Faults();
  const after = startOfPage(faults, { pageSize, pageToken }, studioBeforePage, '');
  faults.refuseIfAny();
  const limit = Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
  const { records: studios, next } = await store.listStudios(after, limit);
  return { studios, nextPageToken: next === null ? '' : studioTokenAfter(next) };
}

/** Yields the id of one studio; undefined: of all studios. */
export async function* studioIds(deps: Reading, only: string | undefined): AsyncGenerator<string> {
  if (only !== undefined) yield only;
  else for await (const { id } of everyStudio(deps)) yield id;
}

/**
 * Yields all studios by id, holding one page in memory at a time.
 *
 * @param after yields only studios with a higher id; null: all
 */
export async function* everyStudio({ store }: Reading, after: string | null = null): AsyncGenerator<Studio> {
  const pages = eachStoredPage((position) => store.listStudios(position, MAX_PAGE_SIZE), after);
  for await (const { records } of pages) yield* records;
}

/**
 * Reads a studio.
 *
 * @param faults the faults of the request so far
 * @throws Refusal INVALID_REQUEST with `faults` and a fault of the id, STUDIO_NOT_FOUND
 */
export async function existingStudio(store: Reading['store'], studioId: string, faults: Faults): Promise<Studio> {
  faults.note('studioId', crmIdFault(studioId));
  faults.refuseIfAny();
  const studio = await store.findStudio(studioId);
  if (!studio) throw new Refusal('STUDIO_NOT_FOUND');
  return studio;
}

/** Returns the regions of a studio; an unknown one has none. */
export async function findRegions(store: Reading['store'], studioId: string): Promise<StudioRegions> {
  return (await store.findStudio(studioId)) ?? { regionCode: null, formerRegions: [] };
}

export interface AuditQuery {
  /** Undefined: the deployment. */
  readonly studioId: string | undefined;
  /** Undefined: the studio and its keys. */
  readonly leadId: string | undefined;
}

/**
 * Lists the audit events of a studio and its keys, of a lead, or of the deployment (no studio).
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function listAuditEvents({ store }: Reading, { studioId, leadId }: AuditQuery): Promise<AuditEvent[]> {
  const faults = new Faults();
  if (studioId === undefined) return store.listAuditEvents(OF_DEPLOYMENT, null);
  if (leadId !== undefined) faults.note('leadId', uuidFault(leadId));
  await existingStudio(store, studioId, faults);
  return store.listAuditEvents(studioId, leadId?.toLowerCase() ?? null);
}

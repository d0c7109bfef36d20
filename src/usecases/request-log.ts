import { uuidFault } from '../../common/rules/field-rules.ts';
import { isRequestId } from '../../common/rules/public-api.ts';
import { MAX_RECORDED_REQUESTS } from '../../common/rules/request-log.ts';
import { idBeforePage } from '../domain/cursor.ts';
import { Faults } from '../domain/refusal.ts';
import {
  faultOfRequest,
  firstLoggedId,
  isOfLastDay,
  type LoggedRequest,
  loggedId,
  MAX_LOGGED_REQUESTS,
} from '../domain/request-log.ts';
import type { Store } from '../store/store.ts';
import type { Changing, Reading } from './dependencies.ts';
import { type PageQuery, startOfPage, tokenAfter } from './requests.ts';
import { existingStudio } from './studios.ts';

/** An unchecked request as a gateway reports it. */
export interface ReportedRequest extends Omit<LoggedRequest, 'id' | 'operation' | 'faultyFields'> {
  readonly operation: string;
  readonly faultyFields: readonly string[];
  readonly time: Date | undefined;
}

export interface RequestBatch {
  readonly batchId: string;
  readonly requests: readonly ReportedRequest[];
}

/** The studios of a gateway; undefined: all. */
type Studios = ReadonlySet<string> | undefined;

/** The number of requests of a studio that a process records before it trims them. */
const TRIM_AFTER = 100;

/** The maximum number of studios with counted requests. Beyond it, counting starts again. */
const MAX_COUNTED_STUDIOS = 10_000;

/**
 * Returns a function that records reported requests, and returns how many it skipped. Only the newest requests of a
 * studio stay. Requests of ended and unknown studios are skipped, so none appears after an erasure: a recording that
 * began earlier ends before the leads are erased.
 */
export function requestRecorder({ store, clock }: Changing) {
  /** The number of requests recorded since a studio was trimmed. */
  const untrimmed = new Map<string, number>();

  /** @throws Refusal INVALID_REQUEST */
  return async ({ batchId, requests }: RequestBatch, studios: Studios): Promise<number> => {
    const faults = new Faults();
    faults.note('batchId', uuidFault(batchId));
    if (requests.length > MAX_RECORDED_REQUESTS)
      faults.note('requests', `must have at most ${MAX_RECORDED_REQUESTS} elements`);
    faults.refuseIfAny();
    const valid = validRequests(batchId.toLowerCase(), requests, clock());
    const byStudio = [...Map.groupBy(valid, ({ studioId }) => studioId)];
    const areRecorded = await Promise.all(byStudio.map(([studioId]) => isRecorded(store, studioId, studios)));
    const recordedByStudio = byStudio.filter((_, index) => areRecorded[index]);
    const recorded = recordedByStudio.flatMap(([, ofStudio]) => ofStudio);
    if (recorded.length > 0) await store.recordRequests(recorded);
    for (const [studioId, ofStudio] of recordedByStudio) await trim(studioId, ofStudio.length);
    return requests.length - recorded.length;
  };

  async function trim(studioId: string, more: number): Promise<void> {
    const count = (untrimmed.get(studioId) ?? 0) + more;
    if (untrimmed.size >= MAX_COUNTED_STUDIOS) untrimmed.clear();
    untrimmed.set(studioId, count);
    if (count < TRIM_AFTER) return;
    untrimmed.delete(studioId);
    await forgetOldRequests({ store, clock }, studioId);
  }
}

const validRequests = (batchId: string, requests: readonly ReportedRequest[], now: Date): LoggedRequest[] =>
  requests
    .map(({ time, ...request }, index) => {
      const id = loggedId(time ?? new Date(Number.NaN), index, batchId);
      return { ...request, id } as LoggedRequest;
    })
    .filter((each) => faultOfRequest(each) === undefined && isOfLastDay(each, now));

async function isRecorded({ findStudio }: Store, studioId: string, studios: Studios) {
  if (studios && !studios.has(studioId)) return false;
  const studio = await findStudio(studioId);
  return studio !== null && studio.status !== 'ended';
}

/** Removes requests of a studio that are too old or too many. */
export const forgetOldRequests = ({ store, clock }: Changing, studioId: string): Promise<void> =>
  store.removeRequests(studioId, { since: firstLoggedId(clock()), newest: MAX_LOGGED_REQUESTS });

export interface RequestQuery extends PageQuery {
  readonly studioId: string;
  /** Only requests that did not succeed. */
  readonly failed: boolean;
  readonly xRequestId?: string | undefined;
  readonly apiKeyId?: string | undefined;
}

const MAX_PAGE_SIZE = 100;

/** The number of requests read at a time. */
const READ_AT_ONCE = 500;

/**
 * Lists the requests of a studio in the last day, newest first. No request names an erased lead, even if it was recorded
 * after the erasure.
 *
 * @returns one page; the token is empty on the last one
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function listRequests(
  { store, clock }: Changing,
  { studioId, failed, xRequestId, apiKeyId, pageSize, pageToken }: RequestQuery,
): Promise<{ readonly requests: readonly LoggedRequest[]; readonly nextPageToken: string }> {
  const faults = new Faults();
  if (xRequestId !== undefined && !isRequestId(xRequestId))
    faults.note('xRequestId', 'must be 1 to 128 letters, digits, dots, underscores or hyphens');
  if (apiKeyId !== undefined) faults.note('apiKeyId', uuidFault(apiKeyId));
  let before = startOfPage(faults, { pageSize, pageToken }, (token) => idBeforePage('requests', studioId, token));
  await existingStudio(store, studioId, faults);
  const limit = Math.min(pageSize || MAX_PAGE_SIZE, MAX_PAGE_SIZE);
  const first = firstLoggedId(clock());
  const keyId = apiKeyId?.toLowerCase();
  const found: LoggedRequest[] = [];
  do {
    const { records, next } = await store.listRequests(studioId, before, READ_AT_ONCE);
    const recent = records.filter(({ id }) => id >= first);
    found.push(
      ...recent.filter(
        (each) =>
          !(failed && each.status !== null && each.code === null) &&
          (xRequestId === undefined || each.requestId === xRequestId) &&
          (keyId === undefined || each.apiKeyId === keyId),
      ),
    );
    before = recent.length < records.length ? null : next;
  } while (before !== null && found.length <= limit);
  const page = found.slice(0, limit);
  const isLast = found.length <= limit;
  return {
    requests: await Promise.all(page.map((each) => withoutErasedLead({ store }, each))),
    nextPageToken: tokenAfter('requests', studioId, isLast ? null : (page.at(-1)?.id ?? null)),
  };
}

async function withoutErasedLead({ store }: Reading, request: LoggedRequest): Promise<LoggedRequest> {
  const { studioId, leadId } = request;
  if (leadId === null || (await store.presenceOfLead(studioId, leadId)) === 'present') return request;
  return { ...request, leadId: null };
}

import { type Filter, MongoBulkWriteError, type UpdateFilter, type WriteError } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import type { Lead } from '../../domain/lead.ts';
import { type ChangeMark, type LeadChange, marked } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import { type LeadChangeStore, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Connection } from './connection.ts';
import {
  ACKNOWLEDGED,
  type ChangesDocument,
  enquiredLeadOf,
  erasedLeadOf,
  isErased,
  type LeadDocument,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  READ,
  WITHOUT_HISTORY,
} from './documents.ts';

const MARK = { ...READ, projection: { changes: 1, createdAt: 1 } } as const;

/** The mark that release 1.1 gave leads of release 1.0; before every change. */
const BEFORE_ALL = new Date(0);

type Marked = Pick<LeadDocument, 'changes' | 'createdAt'>;

/** The mark of a lead as read. One that this service did not write counts as that of its creation. */
export function markOf({ changes, createdAt: created }: Marked): ChangeMark {
  const { revision = 0, since, kinds = { created } }: ChangesDocument = isMark(changes) ? changes : {};
  return { revision, since: since?.getTime() === ACKNOWLEDGED.getTime() ? null : since, kinds };
}

/**
 * A condition that the lead was not marked since it was read: the next revision follows from the one that was read. If it
 * was acknowledged since, its next mark names too many kinds, never too few. An invalid mark may not equal itself once it is read.
 */
const sameMark = ({ changes }: Marked) =>
  (isMark(changes) ? { 'changes.revision': changes.revision ?? null } : {}) as object;

function isMark(changes: unknown): changes is ChangesDocument {
  if (!isPlainObject(changes)) return false;
  const { since, revision, kinds } = changes;
  return (
    (since === undefined || since instanceof Date) &&
    (revision === undefined || Number.isSafeInteger(revision)) &&
    (kinds === undefined || isPlainObject(kinds))
  );
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === '[object Object]';

/** A condition that the lead is still as it was read, whatever has changed it. */
export const asRead = (found: LeadDocument): Filter<LeadDocument> => ({
  stage: found.stage,
  updatedAt: found.updatedAt,
  ...sameMark(found),
});

/** The change feed, in MongoDB: a lead's mark is a part of its document. */
export function mongoLeadChanges(connection: Connection, report: ReportUnreadable): LeadChangeStore {
  const { leads, call } = connection;
  const byTime = changesByTime(connection);
  const changesIn = (reportUnreadable: ReportUnreadable) =>
    firstReadable<LeadDocument, LeadChange, ChangePosition>({
      ...byTime,
      positionOf: ({ changes, _id }) => (changes?.since instanceof Date ? { since: changes.since, _id } : undefined),
      check: (document) => readableOrNull(leadChangeOf(document), reportUnreadable),
    });
  const readChanges = changesIn(report);
  const readOldest = changesIn(() => {});
  return {
    listLeadChanges: (limit) => call(() => readChanges(limit)),

    acknowledgeLeadChanges: (acknowledgements) =>
      call(async () => {
        if (acknowledgements.length === 0) return 0;
        const byRevision = Map.groupBy(acknowledgements, ({ revision }) => revision);
        const updates = [...byRevision].map(([revision, seen]) => {
          const filter = {
            studioId: { $in: [...new Set(seen.map(({ studioId }) => studioId))] },
            _id: { $in: seen.map(({ studioId, leadId }) => leadKey(studioId, leadId)) },
            'changes.revision': revision === 0 ? null : revision,
            'changes.since': { $lt: ACKNOWLEDGED },
          } as Filter<LeadDocument>;
          const update = { $set: { 'changes.since': ACKNOWLEDGED }, $unset: { 'changes.kinds': 1 } };
          return { updateMany: { filter, update: update as UpdateFilter<LeadDocument> } };
        });
        // The server must not go on after the call has stopped waiting.
        const options = { ordered: false, maxTimeMS: STORE_SILENCE_MS };
        return (await leads.bulkWrite(updates, options)).modifiedCount;
      }),

    resendLeads: (studioId, after, limit, now) =>
      call(async () => {
        const _id = leadIdsAfter(studioId, after);
        const found = await leads.find({ studioId, _id }, MARK).sort({ _id: 1 }).limit(limit).toArray();
        if (found.length === 0) return { leads: 0, skipped: 0, next: null };
        // One update each, because the mark depends on the lead.
        const updates = found.map((lead) => ({
          updateOne: {
            // A lead that has changed since is marked already.
            filter: { studioId, _id: lead._id, ...sameMark(lead) },
            update: { $set: { changes: marked(markOf(lead), 'resent', now) } } as UpdateFilter<LeadDocument>,
          },
        }));
        const refusals = await leads.bulkWrite(updates, { ordered: false }).then(() => [], refusalsIn);
        for (const { index } of refusals) {
          const id = found[index]?._id.id.toString() ?? '';
          report(new UnreadableRecord('lead', { studioId, id }, 'changes'));
        }
        const skipped = refusals.length;
        return { leads: found.length - skipped, skipped, next: lastIdOfFull(found, limit) };
      }),

    measureLeadChanges: (bound) =>
      call(async () => {
        const [first] = await readOldest(1);
        const isWaiting = { 'changes.since': { $lt: ACKNOWLEDGED } } as Filter<LeadDocument>;
        return { leads: await leads.countDocuments(isWaiting, { limit: bound }), since: first?.since ?? null };
      }),
  };
}

/** Error codes of an update that is refused because of its document: its fields, or its size. */
export const OF_DOCUMENT: readonly unknown[] = [2, 14, 28, 121, 10334, 17419, 285999133];

/** Returns the updates that the database refused, each because of its document. @throws any other error */
function refusalsIn(error: unknown): readonly WriteError[] {
  if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError()) throw error;
  const refusals = [error.writeErrors].flat();
  // The command failed as a whole, or every update would.
  if (refusals.length === 0 || refusals.some(({ code }) => !OF_DOCUMENT.includes(code))) throw error;
  return refusals;
}

function leadChangeOf(document: LeadDocument): Checked<LeadChange> {
  const { changes, createdAt } = document;
  const { revision = 0, since, kinds = { created: createdAt } } = Object(changes);
  const lead = isErased(document) ? erasedLeadOf(document) : (enquiredLeadOf(document) as Checked<Lead>);
  return checkedLeadChange(lead, {
    revision,
    // BEFORE_ALL is not the time of a change.
    since: since?.getTime?.() === BEFORE_ALL.getTime() ? undefined : since,
    kinds: Object(kinds),
  });
}

/** The first step by which the ceiling is raised; each further one is twice as long; milliseconds. */
const FIRST_STEP_MS = 1000;

/** No change is likely to be further ahead of the clock than this; milliseconds. */
const AHEAD_MS = 3_600_000;

export interface ChangePosition {
  readonly since: Date;
  readonly _id: LeadDocument['_id'];
}

/**
 * Finds leads by the time of their first unacknowledged change, oldest first. Some engines do not read the index in
 * order but sort all matches, so that each query would cost as much as all marked leads. Therefore a query is limited
 * to times below a ceiling, which follows the leads that were found. The ceiling is only an estimate: when it leaves
 * too few leads, it is raised, eventually beyond every time. So no lead is missed, whatever its time.
 */
export function changesByTime({ leads }: Pick<Collections, 'leads'>) {
  let ceiling = ACKNOWLEDGED;
  let lastSuccess = new Date(0);

  async function find(count: number, from?: object, order?: { readonly _id: 1 }): Promise<LeadDocument[]> {
    for (let step = FIRST_STEP_MS; ; step *= 2) {
      const below = ceiling;
      const isBelow = { 'changes.since': { $lt: below } } as Filter<LeadDocument>;
      const filter = from ? { $and: [isBelow, from] } : isBelow;
      try {
        const sorted = leads.find(filter, WITHOUT_HISTORY).sort({ 'changes.since': 1, ...order });
        const found = await sorted.limit(count).toArray();
        lastSuccess = below;
        if (found.length === count) lowerTo(found);
        if (found.length === count || below === ACKNOWLEDGED) return found;
      } catch (error) {
        // Perhaps too many leads match: halve the distance for the next call.
        const highest = Math.min(below.getTime(), Date.now() + AHEAD_MS);
        ceiling = new Date((Math.min(lastSuccess.getTime(), highest) + highest) / 2);
        throw error;
      }
      raise(below, step);
    }
  }

  function raise(above: Date, step: number): void {
    const raised = above.getTime() + step;
    ceiling = raised > Date.now() + AHEAD_MS ? ACKNOWLEDGED : new Date(raised);
  }

  /** Lowers the ceiling so that about twice as many leads as found are below it. */
  function lowerTo(found: readonly LeadDocument[]): void {
    const [first = 0, last = 0] = [found[0], found.at(-1)].map((lead) => lead?.changes?.since?.getTime());
    const lowered = last + Math.max(last - first, 1);
    if (lowered < ceiling.getTime()) ceiling = new Date(lowered);
  }

  return {
    /** Finds the first leads; those with one time are in any order. */
    first: (count: number) => find(count),

    /**
     * Finds the first leads behind a position, by time and id; null: from the start. Sorting by id as well may cost a sort
     * even on engines that read the index in order.
     */
    behind(position: ChangePosition | null, count: number) {
      const from = position
        ? {
            'changes.since': { $gte: position.since },
            $or: [{ 'changes.since': { $gt: position.since } }, { _id: { $gt: position._id } }],
          }
        : undefined;
      if (position && position.since >= ceiling) raise(position.since, FIRST_STEP_MS);
      return find(count, from, { _id: 1 });
    },
  };
}

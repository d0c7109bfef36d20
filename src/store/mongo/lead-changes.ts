import { type Filter, MongoBulkWriteError, type UpdateFilter, type WriteError } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { type ChangeMark, type LeadChange, marked } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { FirstReadable } from '../first-readable.ts';
import { type LeadChangeStore, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { type ChangePosition, ChangesByTime } from './changes-by-time.ts';
import type { Connection } from './connection.ts';
import {
  ACKNOWLEDGED,
  type ChangesDocument,
  erasedLeadOf,
  isErased,
  type LeadDocument,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  leadOf,
  READ,
} from './documents.ts';

/** Reads only what the next mark depends on. */
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

/** Whether this service may have written a mark. */
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
  const byTime = new ChangesByTime();
  const changesIn = (reportUnreadable: ReportUnreadable) =>
    new FirstReadable<LeadDocument, LeadChange, ChangePosition>({
      first: (count) => byTime.first(connection, count),
      behind: (position, count) => byTime.behind(connection, position, count),
      positionOf: ({ changes, _id }) => (changes?.since instanceof Date ? { since: changes.since, _id } : undefined),
      check: (document) => readableOrNull(leadChangeOf(document), reportUnreadable),
    });
  const changes = changesIn(report);
  const oldest = changesIn(() => {});
  return {
    listLeadChanges: (limit) => call(() => changes.read(limit)),

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
        const [first] = await oldest.read(1);
        const isWaiting = { 'changes.since': { $lt: ACKNOWLEDGED } } as Filter<LeadDocument>;
        return { leads: await leads.countDocuments(isWaiting, { limit: bound }), since: first?.since ?? null };
      }),
  };
}

/** Error codes of an update that is refused because of its document: its fields, or its size. */
const OF_DOCUMENT: readonly unknown[] = [2, 14, 28, 121, 10334, 17419, 285999133];

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
  const lead = isErased(document) ? erasedLeadOf(document) : leadOf(document);
  return checkedLeadChange(lead, {
    revision,
    // BEFORE_ALL is not the time of a change.
    since: since?.getTime?.() === BEFORE_ALL.getTime() ? undefined : since,
    kinds: Object(kinds),
  });
}

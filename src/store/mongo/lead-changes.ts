import type { Filter, UpdateFilter } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { type ChangeKind, type LeadChange, nextRevision } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { readFirstReadable } from '../read-first-readable.ts';
import type { LeadChangeStore, ReportUnreadable } from '../store.ts';
import { ChangesByTime } from './changes-by-time.ts';
import type { Connection } from './connection.ts';
import {
  ACKNOWLEDGED,
  erasedLeadOf,
  isErased,
  type LeadDocument,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  leadOf,
  WITHOUT_HISTORY,
} from './documents.ts';

/** The mark that release 1.1 gave leads of the release before; before every change. */
const BEFORE_ALL = new Date(0);

/**
 * The part of an update that marks the lead as changed. Kinds accumulate until they are acknowledged; a lead without
 * any that was never acknowledged was created. If it is acknowledged after it was read, the mark names too many kinds,
 * never too few.
 *
 * @param found the lead as read
 */
export function changeMark({ changes, createdAt }: LeadDocument, kind: ChangeKind, time: Date) {
  const isCreationUnacknowledged = !changes?.kinds && changes?.since?.getTime() !== ACKNOWLEDGED.getTime();
  return {
    $set: {
      ...(isCreationUnacknowledged && { 'changes.kinds.created': createdAt }),
      [`changes.kinds.${kind}`]: time,
      'changes.revision': nextRevision(changes?.revision ?? 0, time),
    },
    $min: { 'changes.since': time },
  };
}

/** A condition that the lead was not marked since it was read: the next revision follows from the one that was read. */
export const sameMark = ({ changes }: LeadDocument) => ({ 'changes.revision': changes?.revision ?? null }) as object;

/** The change feed, in MongoDB: a lead's mark is a part of its document. */
export function mongoLeadChanges(connection: Connection, report: ReportUnreadable): LeadChangeStore {
  const { leads, call } = connection;
  const oldest = new ChangesByTime();
  return {
    listLeadChanges: (limit) =>
      call(() =>
        readFirstReadable(
          limit,
          (count) => oldest.find(connection, count),
          (document) => readableOrNull(leadChangeOf(document), report),
        ),
      ),

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
        const found = await leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(limit).toArray();
        if (found.length === 0) return { leads: 0, next: null };
        // One update each, because the mark depends on the lead.
        await leads.bulkWrite(
          found.map((lead) => ({
            updateOne: {
              // A lead that has changed since is marked already.
              filter: { studioId, _id: lead._id, ...sameMark(lead) },
              update: changeMark(lead, 'resent', now) as UpdateFilter<LeadDocument>,
            },
          })),
          { ordered: false },
        );
        return { leads: found.length, next: lastIdOfFull(found, limit) };
      }),

    measureLeadChanges: (bound) =>
      call(async () => {
        const [first] = await readFirstReadable(
          1,
          (count) => oldest.find(connection, count),
          (document) => readableOrNull(leadChangeOf(document), report),
        );
        const isWaiting = { 'changes.since': { $lt: ACKNOWLEDGED } } as Filter<LeadDocument>;
        return { leads: await leads.countDocuments(isWaiting, { limit: bound }), since: first?.since ?? null };
      }),
  };
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

import type { Filter, UpdateFilter } from 'mongodb';
import { type ChangeKind, type LeadChange, nextRevision } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { readReadable } from '../read-readable.ts';
import type { LeadChangeStore, ReportUnreadable } from '../store.ts';
import { ChangesByTime } from './changes-by-time.ts';
import type { Connection } from './connection.ts';
import {
  ACKNOWLEDGED,
  erasedLeadOf,
  FIRST_ID,
  isErased,
  LAST_ID,
  type LeadDocument,
  leadKey,
  leadOf,
  WITHOUT_HISTORY,
} from './documents.ts';

/** What stands in a lead that an earlier release wrote, which marked none: before every change. */
const BEFORE_ALL = new Date(0);

/**
 * What an update of a lead does so that a change is marked in the same write. Kinds stay until they are acknowledged; a lead that
 * has none, and was never acknowledged, has been created. It may be acknowledged after it was read: then it tells too much, never too
 * little.
 *
 * @param found the lead as it was read
 */
export function marked({ changes, createdAt }: LeadDocument, kind: ChangeKind, time: Date) {
  const isCreationUntold = !changes?.kinds && changes?.since?.getTime() !== ACKNOWLEDGED.getTime();
  return {
    $set: {
      ...(isCreationUntold && { 'changes.kinds.created': createdAt }),
      [`changes.kinds.${kind}`]: time,
      'changes.revision': nextRevision(changes?.revision ?? 0, time),
    },
    $min: { 'changes.since': time },
  };
}

/** What finds a lead that has not been marked since it was read: another mark may have another revision than follows from it. */
export const stillMarked = ({ changes }: LeadDocument) => ({ 'changes.revision': changes?.revision ?? null }) as object;

/** The feed of changes, in MongoDB: a lead's mark stands in its document. */
export function mongoLeadChanges(connection: Connection, report: ReportUnreadable): LeadChangeStore {
  const { leads, call } = connection;
  const oldest = new ChangesByTime();
  return {
    listLeadChanges: (limit) =>
      call(() =>
        readReadable(
          limit,
          (count) => oldest.find(connection, count),
          (document) => readableOrNull(leadChangeOf(document), report),
        ),
      ),

    acknowledgeLeadChanges: (acknowledgements) =>
      call(async () => {
        const byRevision = Map.groupBy(acknowledgements, ({ revision }) => revision);
        const outcomes = await Promise.all(
          byRevision.entries().map(([revision, seen]) => {
            const filter = {
              studioId: { $in: [...new Set(seen.map(({ studioId }) => studioId))] },
              _id: { $in: seen.map(({ studioId, leadId }) => leadKey(studioId, leadId)) },
              'changes.revision': revision === 0 ? null : revision,
              'changes.since': { $lt: ACKNOWLEDGED },
            } as Filter<LeadDocument>;
            const change = { $set: { 'changes.since': ACKNOWLEDGED }, $unset: { 'changes.kinds': 1 } };
            return leads.updateMany(filter, change as UpdateFilter<LeadDocument>);
          }),
        );
        return outcomes.reduce((sum, { modifiedCount }) => sum + modifiedCount, 0);
      }),

    resendLeads: (studioId, after, limit, now) =>
      call(async () => {
        const begin = after === null ? { $gte: leadKey(studioId, FIRST_ID) } : { $gt: leadKey(studioId, after) };
        const _id = { ...begin, $lte: leadKey(studioId, LAST_ID) };
        const found = await leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(limit).toArray();
        if (found.length === 0) return { leads: 0, next: null };
        // Each by itself: what is marked depends on what was there.
        await leads.bulkWrite(
          found.map((lead) => ({
            updateOne: {
              // One that has changed since waits anyway.
              filter: { studioId, _id: lead._id, ...stillMarked(lead) },
              update: marked(lead, 'resent', now) as UpdateFilter<LeadDocument>,
            },
          })),
          { ordered: false },
        );
        return { leads: found.length, next: found.length < limit ? null : (found.at(-1)?._id.id.toString() ?? null) };
      }),

    markUnmarked: (studioId, after, last) =>
      call(async () => {
        const begin = after === null ? { $gte: leadKey(studioId, FIRST_ID) } : { $gt: leadKey(studioId, after) };
        const _id = { ...begin, $lte: leadKey(studioId, last ?? LAST_ID) };
        const isUnmarked = { studioId, _id, 'changes.since': null } as Filter<LeadDocument>;
        await leads.updateMany(isUnmarked, { $set: { 'changes.since': BEFORE_ALL } } as UpdateFilter<LeadDocument>);
      }),

    measureLeadChanges: (bound) =>
      call(async () => {
        const [first] = await readReadable(
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
    // An earlier release wrote none.
    since: since?.getTime?.() === BEFORE_ALL.getTime() ? undefined : since,
    kinds: Object(kinds),
  });
}

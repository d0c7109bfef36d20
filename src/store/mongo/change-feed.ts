import type { Filter, UpdateFilter } from 'mongodb';
import type { Lead } from '../../domain/lead.ts';
import { DISTRIBUTED, firstChangeOf, type LeadChange, marked, settledOf } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import { type LeadChangeStore, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { type ChangePosition, changesByTime, distributedByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import type { Distribution } from './distribution.ts';
import {
  ACKNOWLEDGED,
  enquiredLeadOf,
  erasedLeadOf,
  isErased,
  type LeadDocument,
  named,
  nameOf,
  nameOfLead,
  OF_MANY,
} from './documents.ts';
import { findSome, MARK, markOf, refusalsIn, sameMark } from './marks.ts';

/** The mark that release 1.1 gave leads of release 1.0; before every change. */
const BEFORE_ALL = new Date(0);

/** The change feed of the unnamed consumer, in MongoDB: a lead's mark is a part of its document. */
export function mongoLeadChanges(
  connection: Connection,
  { distribute, distributeLeads }: Distribution,
): LeadChangeStore {
  const { leads, call, report } = connection;
  const [byTime, distributed] = [changesByTime(connection), distributedByTime(connection)];
  const changesIn = (queue: typeof byTime, reportUnreadable: ReportUnreadable) =>
    firstReadable<LeadDocument, LeadChange, ChangePosition>({
      ...queue,
      check: (document) => readableOrNull(leadChangeOf(document), reportUnreadable),
    });
  const [readMarked, readDistributed] = [changesIn(byTime, report), changesIn(distributed, report)];
  const readOldest = [byTime, distributed].map((queue) => changesIn(queue, () => {}));
  return {
    listLeadChanges: (limit) =>
      call(async () => {
        // What is distributed may all be of test studios.
        for (;;) {
          const { isNeeded, isComplete } = await distribute();
          const found = await (isNeeded ? readDistributed : readMarked)(limit);
          if (found.length > 0 || isComplete) return found;
        }
      }),

    acknowledgeLeadChanges: (acknowledgements) =>
      call(async () => {
        if (acknowledgements.length === 0) return settledOf(0, [], () => null);
        const isNeeded = await distributeLeads(acknowledgements);
        const isMarked = { ...(isNeeded && { $gte: new Date(DISTRIBUTED) }), $lt: ACKNOWLEDGED };
        const byRevision = Map.groupBy(acknowledgements, ({ revision }) => revision);
        const updates = [...byRevision].map(([revision, seen]) => {
          const filter = {
            ...named(seen),
            'changes.revision': revision === 0 ? null : revision,
            'changes.since': isMarked,
          } as Filter<LeadDocument>;
          const update = { $set: { 'changes.since': ACKNOWLEDGED }, $unset: { 'changes.kinds': 1 } };
          return { updateMany: { filter, update: update as UpdateFilter<LeadDocument> } };
        });
        const { modifiedCount } = await leads.bulkWrite(updates, OF_MANY);
        const found =
          modifiedCount === acknowledgements.length ? [] : await leads.find(named(acknowledgements), MARK).toArray();
        const waiting = new Map(
          found.map((lead) => {
            const { since, revision } = markOf(lead);
            return [nameOf(lead._id), since === null ? null : revision];
          }),
        );
        return settledOf(modifiedCount, acknowledgements, (each) => waiting.get(nameOfLead(each)));
      }),

    resendLeads: (some, now, lowest) =>
      call(async () => {
        const { studioId } = some;
        const { found, next } = await findSome(leads, some);
        if (found.length === 0) return { leads: 0, skipped: 0, next };
        // One update each, because the mark depends on the lead.
        const updates = found.map((lead) => ({
          updateOne: {
            // A lead that has changed since is marked already.
            filter: { studioId, _id: lead._id, ...sameMark(lead) },
            update: { $set: { changes: marked(markOf(lead), 'resent', now, lowest) } } as UpdateFilter<LeadDocument>,
          },
        }));
        const refusals = await leads.bulkWrite(updates, { ordered: false }).then(() => [], refusalsIn);
        for (const { index } of refusals) {
          const id = found[index]?._id.id.toString() ?? '';
          report(new UnreadableRecord('lead', { studioId, id }, 'changes'));
        }
        const skipped = refusals.length;
        return { leads: found.length - skipped, skipped, next };
      }),

    measureLeadChanges: (bound) =>
      call(async () => {
        const found = (await Promise.all(readOldest.map((read) => read(1)))).flat().map(({ since }) => since.getTime());
        const isWaiting = { 'changes.since': { $lt: ACKNOWLEDGED } } as Filter<LeadDocument>;
        const since = found.length > 0 ? new Date(Math.min(...found)) : null;
        return { leads: await leads.countDocuments(isWaiting, { limit: bound }), since };
      }),
  };
}

export function leadChangeOf(document: LeadDocument): Checked<LeadChange> {
  const { changes, createdAt } = document;
  const { revision = 0, since: mark, kinds = { created: createdAt } } = Object(changes);
  const lead = isErased(document) ? erasedLeadOf(document) : (enquiredLeadOf(document) as Checked<Lead>);
  const since = mark instanceof Date ? firstChangeOf(mark) : undefined;
  return checkedLeadChange(lead, {
    revision,
    // BEFORE_ALL is not the time of a change.
    since: since?.getTime() === BEFORE_ALL.getTime() ? undefined : since,
    kinds: Object(kinds),
    attempts: 0,
  });
}

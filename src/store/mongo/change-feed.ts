import type { Filter, UpdateFilter } from 'mongodb';
import type { Lead } from '../../domain/lead.ts';
import {
  type ChangeMark,
  DISTRIBUTED,
  firstChangeOf,
  type LeadChange,
  marked,
  resentTo,
  settledOf,
} from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import { type LeadChangeStore, type ReportUnreadable, StoreUnavailable, UnreadableRecord } from '../store.ts';
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
  studiosOf,
} from './documents.ts';
import { findSome, MARK, markOf, refusalsIn, sameMark } from './marks.ts';

/** The mark of leads whose first change has no time, because release 1.0 wrote them; before every change. */
const BEFORE_ALL = new Date(0);

/** How often leads are marked that change while they are marked. */
const MAX_ATTEMPTS = 5;

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

    resendLeads: resender(connection),

    measureLeadChanges: (bound) =>
      call(async () => {
        const found = (await Promise.all(readOldest.map((read) => read(1)))).flat().map(({ since }) => since.getTime());
        const isWaiting = { 'changes.since': { $lt: ACKNOWLEDGED } } as Filter<LeadDocument>;
        const since = found.length > 0 ? new Date(Math.min(...found)) : null;
        return { leads: await leads.countDocuments(isWaiting, { limit: bound }), since };
      }),
  };
}

/** Returns a function that marks leads as if they had changed. */
function resender({ leads, call, report }: Connection): LeadChangeStore['resendLeads'] {
  /** Marks leads as they were read; returns the number of refused ones, and the leads that have changed meanwhile. */
  async function markAll(found: readonly LeadDocument[], mark: (lead: LeadDocument) => ChangeMark) {
    const studioId = studiosOf(found);
    const marks = new Map(found.map((lead) => [nameOf(lead._id), mark(lead)]));
    // One update each, because the mark depends on the lead.
    const updates = found.map((lead) => {
      const update = { $set: { changes: marks.get(nameOf(lead._id)) } } as UpdateFilter<LeadDocument>;
      return { updateOne: { filter: { studioId: lead.studioId, _id: lead._id, ...sameMark(lead) }, update } };
    });
    let missed = 0;
    const count = ({ matchedCount }: { readonly matchedCount: number }) => {
      missed = found.length - matchedCount;
      return [];
    };
    const refusals = await leads.bulkWrite(updates, { ordered: false }).then(count, refusalsIn);
    const refused = new Set(refusals.map(({ index }) => found[index]));
    for (const lead of refused)
      if (lead)
        report(new UnreadableRecord('lead', { studioId: lead.studioId, id: lead._id.id.toString() }, 'changes'));
    if (missed === 0 && refused.size === 0) return { refused: 0, changed: [] };
    const $in = found.filter((lead) => !refused.has(lead)).map(({ _id }) => _id);
    const read = await leads.find({ studioId, _id: { $in } }, MARK).toArray();
    const changed = read.filter((lead) => markOf(lead).revision !== marks.get(nameOf(lead._id))?.revision);
    return { refused: refused.size, changed };
  }

  return (some, now, { lowest, consumer } = {}) =>
    call(async () => {
      const kind = consumer === undefined ? 'resent' : resentTo(consumer);
      const { found, next } = await findSome(leads, some);
      let skipped = 0;
      // A lead that has changed meanwhile may be marked for another consumer only.
      let rest: readonly LeadDocument[] = found;
      for (let attempt = 0; rest.length > 0; attempt += 1) {
        if (attempt === MAX_ATTEMPTS) throw new StoreUnavailable('leads change while they are sent again');
        const { refused, changed } = await markAll(rest, (lead) => marked(markOf(lead), kind, now, lowest));
        skipped += refused;
        rest = changed;
      }
      return { leads: found.length - skipped, skipped, next };
    });
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

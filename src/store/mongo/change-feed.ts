import type { UpdateFilter } from 'mongodb';
import { type ChangeMark, marked, resentTo } from '../../domain/lead-change.ts';
import { StoreUnavailable, UnreadableRecord } from '../port/faults.ts';
import type { ResendStore } from '../port/resending.ts';
import type { Connection } from './connection.ts';
import { type LeadDocument, nameOf, studiosOf } from './documents.ts';
import { findSome, MARK, markOf, sameMark, updateEach } from './marks.ts';

/** How often leads are marked that change while they are marked. */
const MAX_ATTEMPTS = 5;

/** The marks of the change feed, in MongoDB: a lead's mark is a part of its document. */
export const mongoLeadChanges = (connection: Connection): ResendStore => ({ resendLeads: resender(connection) });

/** Returns a function that marks leads as if they had changed. */
function resender({ leads, call, report }: Connection): ResendStore['resendLeads'] {
  /** Marks leads as they were read; returns the number of refused ones, and the leads that have changed meanwhile. */
  async function markAll(found: readonly LeadDocument[], mark: (lead: LeadDocument) => ChangeMark) {
    const studioId = studiosOf(found);
    const marks = new Map(found.map((lead) => [nameOf(lead._id), mark(lead)]));
    // One update each, because the mark depends on the lead.
    const updates = found.map((lead) => {
      const update = { $set: { changes: marks.get(nameOf(lead._id)) } } as UpdateFilter<LeadDocument>;
      return { updateOne: { filter: { studioId: lead.studioId, _id: lead._id, ...sameMark(lead) }, update } };
    });
    const { found: matched, refused } = await updateEach(leads, updates);
    if (matched === found.length) return { refused: 0, changed: [] };
    for (const { studioId, _id } of found.filter((_, index) => refused.has(index)))
      report(new UnreadableRecord('lead', { studioId, id: _id.id.toString() }, 'changes'));
    const $in = found.filter((_, index) => !refused.has(index)).map(({ _id }) => _id);
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

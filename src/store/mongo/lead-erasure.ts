import type { UpdateFilter } from 'mongodb';
import { nextUpdate } from '../../domain/lead.ts';
import { type Checked, readableOrNull, readableOrThrow } from '../checked.ts';
import { type EraseLeadOutcome, type LeadErasureStore, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { actor, historyRefusal, pushEvents } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  erasedClaim,
  erasedLeadOf,
  isErased,
  type LeadDocument,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  WITHOUT_HISTORY,
} from './documents.ts';
import { changeMark, sameMark } from './lead-changes.ts';

/** The fields with personal data, or computed from such. */
const PERSONAL = {
  displayName: 1,
  contact: 1,
  sourceId: 1,
  note: 1,
  original: 1,
  contactRule: 1,
  'idempotency.fingerprint': 1,
  'idempotency.fingerprintVersion': 1,
} as const;

export function mongoLeadErasure({ leads, call }: Connection, report: ReportUnreadable): LeadErasureStore {
  return {
    walkErasedLeads: (studioId, after, limit) =>
      call(async () => {
        const _id = leadIdsAfter(studioId, after);
        const found = await leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(limit).toArray();
        const erased = found.filter(isErased).flatMap((each) => readableOrNull(erasedLeadOf(each), report) ?? []);
        return { leads: erased, next: lastIdOfFull(found, limit) };
      }),

    eraseLead: ({ studioId, leadId, memberId, caller, now, expectedUpdatedAt }) =>
      call((deadline) =>
        untilKnown<Checked<EraseLeadOutcome>>(deadline, async () => {
          const _id = leadKey(studioId, leadId);
          const found = await leads.findOne({ studioId, _id }, WITHOUT_HISTORY);
          if (!found) return { kind: 'not-found' };
          const remaining = erasedLeadOf({ erasedAt: now, ...found });
          if (remaining instanceof UnreadableRecord) return remaining;
          if (isErased(found)) return { kind: 'erased', lead: remaining };
          if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== remaining.updatedAt.getTime())
            return { kind: 'stale' };
          const time = nextUpdate(remaining.updatedAt, now);
          const mark = changeMark(found, 'erased', time);
          deadline.throwIfAborted();
          try {
            await leads.updateOne(
              // Only if the lead is unchanged since it was read; otherwise the next attempt reads it again.
              { studioId, _id, updatedAt: found.updatedAt, ...sameMark(found) },
              {
                ...mark,
                $set: { ...mark.$set, updatedAt: time, erasedAt: time, openContactKey: erasedClaim(leadId) },
                $unset: PERSONAL,
                $push: pushEvents({ action: 'lead-erased', ...actor({ memberId, caller }), time }),
              } as UpdateFilter<LeadDocument>,
            );
          } catch (error) {
            const refused = await historyRefusal(leads, { kind: 'lead', studioId, id: leadId, _id }, error);
            if (refused) return refused;
            throw error;
          }
          // The next attempt reads the outcome, whichever process wrote it.
          return undefined;
        }),
      ).then(readableOrThrow),
  };
}

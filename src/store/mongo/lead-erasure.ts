import type { UpdateFilter } from 'mongodb';
import { nextUpdate } from '../../domain/lead.ts';
import { type Checked, readableOrNull, readableOrThrow } from '../checked.ts';
import { type EraseLeadOutcome, type LeadErasureStore, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { applyOnce } from './apply-once.ts';
import { actor } from './audit.ts';
import type { Connection } from './connection.ts';
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

    eraseLead: ({ studioId, leadId, memberId, caller, now, requestId, expectedUpdatedAt }) =>
      call((deadline) =>
        applyOnce<LeadDocument, Checked<EraseLeadOutcome>>(leads, deadline, {
          which: { studioId, _id: leadKey(studioId, leadId) },
          requestId,
          // No record: events that cannot be read are replaced, since they keep no personal data.
          async decide(found) {
            if (!found) return { outcome: { kind: 'not-found' } };
            const remaining = erasedLeadOf({ erasedAt: now, ...found });
            if (remaining instanceof UnreadableRecord) return { outcome: remaining };
            if (isErased(found)) return { outcome: { kind: 'erased', lead: remaining } };
            if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== remaining.updatedAt.getTime()) {
              return { outcome: { kind: 'stale' } };
            }
            const time = nextUpdate(remaining.updatedAt, now);
            const mark = changeMark(found, 'erased', time);
            const change = { updatedAt: time, erasedAt: time, openContactKey: erasedClaim(leadId) };
            return {
              outcome: { kind: 'erased', lead: { ...remaining, updatedAt: time, erasedAt: time } },
              where: { updatedAt: found.updatedAt, ...sameMark(found) },
              update: { ...mark, $set: { ...mark.$set, ...change }, $unset: PERSONAL } as UpdateFilter<LeadDocument>,
              events: [{ action: 'lead-erased', ...actor({ memberId, caller }), time }],
            };
          },
        }),
      ).then(readableOrThrow),
  };
}

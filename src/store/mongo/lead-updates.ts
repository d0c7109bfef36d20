import { correctedFields } from '../../domain/correction.ts';
import { isOpen, nextUpdate } from '../../domain/lead.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import { type LeadStore, UnreadableRecord, type UpdateLeadOutcome } from '../store.ts';
import { applyOnce } from './apply-once.ts';
import { actor } from './audit.ts';
import type { Connection } from './connection.ts';
import {
  claimsDocument,
  closedClaimsDocument,
  correctionFields,
  formerClaimsAfter,
  type LeadDocument,
  leadKey,
  originalDocument,
  presentLeadOf,
} from './documents.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { asRead, changeMark } from './lead-changes.ts';
import { otherOpenLead } from './open-lead-conflict.ts';

/** Corrections of leads, in MongoDB. */
export function leadUpdater({ leads, call, indexes }: Connection): LeadStore['updateLead'] {
  // Concurrent updates of one lead would conflict and retry until their deadline.
  const mutex = new KeyedMutex();
  return ({ studioId, leadId, correction, claims, expectedUpdatedAt, memberId, caller, now, requestId }) =>
    call((deadline) => {
      const _id = leadKey(studioId, leadId);
      const update = () =>
        applyOnce<LeadDocument, Checked<UpdateLeadOutcome>>(leads, deadline, {
          which: { studioId, _id },
          requestId,
          record: { kind: 'lead', studioId, id: leadId },
          onDuplicate: () => otherOpenLead(leads, _id, claims),
          async decide(found, isApplied) {
            const lead = found && presentLeadOf(found);
            if (!lead) return { outcome: { kind: 'not-found' } };
            if (lead instanceof UnreadableRecord) return { outcome: lead };
            if (isApplied) return { outcome: { kind: 'updated', lead } };
            if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime()) {
              return { outcome: { kind: 'stale' } };
            }
            const where = asRead(found);
            const corrected = correctedFields(lead, correction);
            if (corrected.length === 0) return { outcome: { kind: 'unchanged', lead }, where };
            if (isOpen(lead.stage) && corrected.includes('contact')) await indexes.expectValid('leads');
            const updatedAt = nextUpdate(lead.updatedAt, now);
            const former = formerClaimsAfter(leadId, found.openContactKey);
            const claimed = isOpen(lead.stage)
              ? claimsDocument(claims, former)
              : closedClaimsDocument(leadId, claims, former);
            const mark = changeMark(found, 'updated', updatedAt);
            const change = {
              ...correctionFields(correction),
              updatedAt,
              ...(corrected.includes('contact') && claimed),
              ...(found.original === undefined && { original: originalDocument(lead) }),
            };
            const event = { action: 'lead-updated', ...actor({ memberId, caller }), time: updatedAt } as const;
            return {
              outcome: { kind: 'updated', lead: { ...lead, ...correction, updatedAt } },
              where,
              update: { ...mark, $set: { ...mark.$set, ...change } },
              events: [{ ...event, to: corrected.join() }],
            };
          },
        });
      return mutex.run([`${studioId} ${leadId}`], update);
    }).then(readableOrThrow);
}

import { correctedFields } from '../../domain/correction.ts';
import { isOpen, nextUpdate } from '../../domain/lead.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import { type LeadStore, UnreadableRecord, type UpdateLeadOutcome } from '../store.ts';
import { actor, historyRefusal, pushEvents } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  claimsDocument,
  closedClaimsDocument,
  correctionFields,
  leadKey,
  originalDocument,
  presentLeadOf,
  WITHOUT_HISTORY,
} from './documents.ts';
import { isDuplicate } from './is-duplicate.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { changeMark, sameMark } from './lead-changes.ts';
import { otherOpenLead } from './open-lead-conflict.ts';

/** Corrections of leads, in MongoDB. */
export function leadUpdater({ leads, call }: Connection): LeadStore['updateLead'] {
  // Concurrent updates of one lead would conflict and retry until their deadline.
  const mutex = new KeyedMutex();
  return ({ studioId, leadId, correction, claims, expectedUpdatedAt, memberId, caller, now }) =>
    call((deadline) => {
      const _id = leadKey(studioId, leadId);
      /** The `updatedAt` that an earlier attempt may have written, whose response was lost. */
      let maybeWritten: Date | undefined;
      const attempt = async (): Promise<Checked<UpdateLeadOutcome> | undefined> => {
        const found = await leads.findOne({ studioId, _id }, WITHOUT_HISTORY);
        const lead = found && presentLeadOf(found);
        if (!lead) return { kind: 'not-found' };
        if (lead instanceof UnreadableRecord) return lead;
        const corrected = correctedFields(lead, correction);
        if (corrected.length === 0 && maybeWritten?.getTime() === lead.updatedAt.getTime()) {
          return { kind: 'updated', lead };
        }
        if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime()) {
          // Another call has changed it since; whether this one did before is unknown.
          return maybeWritten ? undefined : { kind: 'stale' };
        }
        if (corrected.length === 0) return { kind: 'unchanged', lead };
        const updatedAt = nextUpdate(lead.updatedAt, now);
        const claimed = isOpen(lead.stage) ? claimsDocument(claims) : closedClaimsDocument(leadId, claims);
        const mark = changeMark(found, 'updated', updatedAt);
        deadline.throwIfAborted();
        try {
          const { matchedCount } = await leads.updateOne(
            // Only if the lead is unchanged since it was read; otherwise the next attempt reads it again.
            { studioId, _id, stage: lead.stage, updatedAt: lead.updatedAt, ...sameMark(found) },
            {
              ...mark,
              $set: {
                ...mark.$set,
                ...correctionFields(correction),
                updatedAt,
                ...(corrected.includes('contact') && claimed),
                ...(found.original === undefined && { original: originalDocument(lead) }),
              },
              $push: pushEvents({
                action: 'lead-updated',
                ...actor({ memberId, caller }),
                time: updatedAt,
                to: corrected.join(),
              }),
            },
          );
          return matchedCount === 1 ? { kind: 'updated', lead: { ...lead, ...correction, updatedAt } } : undefined;
        } catch (error) {
          if (isDuplicate(error)) return otherOpenLead(leads, _id, claims);
          maybeWritten = updatedAt;
          const refused = await historyRefusal(leads, { kind: 'lead', studioId, id: leadId, _id }, error);
          if (refused) return refused;
          throw error;
        }
      };
      return mutex.run([`${studioId} ${leadId}`], () => untilKnown(deadline, attempt));
    }).then(readableOrThrow);
}

import type { LeadCapture } from '../api-types.ts';
import type { CreatedLead } from '../client.ts';
import { LeadAlreadyOpenError, NoAnswerError, ProblemError } from '../errors.ts';
import { REASON_NOT_TAKEN, REASON_REPLAYED } from '../outcomes.ts';
import { reasonOfFailure } from './reasons.ts';
import { outcomeOfProblem, type Unsent } from './retries.ts';

/** The outcome of sending a lead. */
export type Outcome =
  | {
      readonly state: 'delivered' | 'already_open';
      readonly leadId: string | undefined;
      /** Why the data is kept for a person: perhaps nobody got the visitor's message. Null: the data is erased. */
      readonly reason: string | null;
    }
  | Unsent;

/** The length of the column `lead_id`. */
const UUID_LENGTH = 36;

/** Returns the outcome of a creation for its lead. @param passes how many have sent it, with this one */
export async function readOutcome(
  creation: Promise<CreatedLead>,
  { note }: LeadCapture,
  passes: number,
): Promise<Outcome> {
  try {
    const { lead, replayed, attempts } = await creation;
    // This website sent nothing else with this key, so the lead belongs to another visit.
    const isOther = replayed && attempts === 1 && passes === 1;
    return { state: 'delivered', leadId: lead.id, reason: isOther ? REASON_REPLAYED : null };
  } catch (error) {
    if (error instanceof LeadAlreadyOpenError) {
      const { existingLeadId: id } = error;
      const leadId = id?.length === UUID_LENGTH ? id : undefined;
      return { state: 'already_open', leadId, reason: note === undefined || note === null ? null : REASON_NOT_TAKEN };
    }
    if (error instanceof ProblemError) return outcomeOfProblem(error);
    if (!(error instanceof NoAnswerError)) throw error;
    return { state: 'waiting', reason: reasonOfFailure(error), retryAfterSeconds: error.retryAfterSeconds };
  }
}

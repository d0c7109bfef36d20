import type { CreatedLead } from '../client.ts';
import type { LeadCapture } from '../contract.ts';
import { LeadAlreadyOpenError, LeadIntakeError, ProblemError } from '../errors.ts';
import {
  FAILING_FROM_STATUS,
  REASON_NOT_TAKEN,
  REASON_REPLAYED,
  STATUSES_OF_THE_KEY,
  TEMPORARY_STATUSES,
} from '../outcomes.ts';

/** The outcome of sending a lead. */
export type Outcome =
  | {
      readonly state: 'delivered' | 'already_open';
      readonly leadId: string | undefined;
      /** Why the data is kept for a person: nobody may have got what the visitor wrote. Null: it is erased. */
      readonly reason: string | null;
    }
  /** A retry cannot help: the lead needs a person's attention. */
  | { readonly state: 'refused'; readonly reason: string }
  | {
      /** The lead is sent again later. */
      readonly state: 'waiting';
      readonly reason: string;
      readonly retryAfterSeconds?: number | undefined;
      /** Whether the cause is not this lead's: the attempt does not count, and the lead waits for as long as was asked for. */
      readonly isOfAll?: boolean;
      /** Whether other leads would currently get the same outcome; `perhaps` when the service may be unavailable. */
      readonly holdsForOthers: 'yes' | 'perhaps' | 'no';
    };

/** The length of the column `reason`; characters. */
const MAX_REASON = 1000;

/** The length of the column `lead_id`. */
const UUID_LENGTH = 36;

/** The condition of rows with a status of the key. */
export const OF_THE_KEY = STATUSES_OF_THE_KEY.map((status) => `reason LIKE '${status} %'`).join(' OR ');

/** Returns what the response to a creation means for the lead, which has been sent in so many passes. */
export async function outcomeOf(
  creation: Promise<CreatedLead>,
  { note }: LeadCapture,
  passes: number,
): Promise<Outcome> {
  try {
    const { lead, replayed, attempts } = await creation;
    // Nothing else was sent with this key from here: the lead is that of another visit.
    const isOther = replayed && attempts === 1 && passes === 1;
    return { state: 'delivered', leadId: lead.id, reason: isOther ? REASON_REPLAYED : null };
  } catch (error) {
    if (error instanceof LeadAlreadyOpenError) {
      const { existingLeadId: id } = error;
      const leadId = id?.length === UUID_LENGTH ? id : undefined;
      return { state: 'already_open', leadId, reason: note === undefined || note === null ? null : REASON_NOT_TAKEN };
    }
    if (error instanceof ProblemError) return outcomeOfProblem(error);
    if (!(error instanceof LeadIntakeError)) throw error;
    return { state: 'waiting', reason: reasonOf(`no answer: ${whyNone(error.cause)}`), holdsForOthers: 'perhaps' };
  }
}

/** Returns a text in the form of the column `reason`. */
export function reasonOf(text: string): string {
  const printable = text.replaceAll(/[\p{Control}\p{Surrogate}]+/gu, ' ');
  return [...printable].slice(0, MAX_REASON).join('');
}

function outcomeOfProblem(problem: ProblemError): Outcome {
  const { status, code, title, detail = title, fields, requestId, retryAfterSeconds } = problem;
  const named = Object.entries(fields).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  const about = named.length > 0 ? ` [${named.join('; ')}]` : '';
  const reason = reasonOf(`${status} ${code}: ${detail}${about} (request ${requestId})`);
  const isOfAll = status === 429 || STATUSES_OF_THE_KEY.includes(status);
  if (!isOfAll && status < FAILING_FROM_STATUS && !TEMPORARY_STATUSES.includes(status))
    return { state: 'refused', reason };
  const holdsForOthers = isOfAll || status === 503 ? 'yes' : 'no';
  return { state: 'waiting', reason, retryAfterSeconds, isOfAll, holdsForOthers };
}

/** Returns why there was no response, without addresses: Node's error code, or else the client's message. */
function whyNone(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown';
  const { code } = (cause.cause ?? {}) as { code?: unknown };
  if (typeof code === 'string') return code;
  return cause.name === 'Error' ? cause.message : cause.name;
}

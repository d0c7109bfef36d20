import type { LeadCapture } from '../api-types.ts';
import type { CreatedLead } from '../client.ts';
import { LeadAlreadyOpenError, NoAnswerError, ProblemError } from '../errors.ts';
import { whyNoAnswer } from '../not-sent.ts';
import {
  CONFIGURATION_REASONS,
  FAILING_FROM_STATUS,
  PAUSE_REASONS,
  REASON_NOT_TAKEN,
  REASON_REPLAYED,
  TEMPORARY_STATUSES,
} from '../outcomes.ts';

/** The outcome of sending a lead. */
export type Outcome =
  | {
      readonly state: 'delivered' | 'already_open';
      readonly leadId: string | undefined;
      /** Why the data is kept for a person: no one may have got what the visitor wrote. Null: it is erased. */
      readonly reason: string | null;
    }
  /** A retry cannot help: the lead needs a person's attention. */
  | { readonly state: 'refused'; readonly reason: string }
  | {
      /** The lead is sent again later. */
      readonly state: 'waiting';
      readonly reason: string;
      readonly retryAfterSeconds?: number | undefined;
      /** Whether the attempt does not count: it has written nothing, and its cause is not this lead's. */
      readonly isFree?: boolean;
    };

/** The length of the column `reason`; characters. */
const MAX_REASON = 1000;

/** The length of the column `lead_id`. */
const UUID_LENGTH = 36;

/** The number of characters by which reasons are distinguished. */
const MARK = 4;

const UNANSWERED = 'no answer';

/** The condition of rows whose reason begins like one of these. */
const like = (marks: readonly string[]) => `SUBSTR(reason, 1, ${MARK}) IN ('${marks.join("', '")}')`;

/** The condition of rows that wait because of the configuration. */
export const OF_CONFIGURATION = like(CONFIGURATION_REASONS);

/** The condition of rows until whose next attempt no lead is sent. */
export const IS_PAUSE = like(PAUSE_REASONS);

/** Whether other leads would currently get the same response. */
export const isOfAll = (reason: string): boolean =>
  [...CONFIGURATION_REASONS, ...PAUSE_REASONS].includes(reason.slice(0, MARK));

/** Whether the service may be unavailable. */
export const isUnanswered = (reason: string): boolean => reason.startsWith(UNANSWERED);

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
    if (!(error instanceof NoAnswerError)) throw error;
    return { state: 'waiting', reason: reasonOfFailure(error), retryAfterSeconds: error.retryAfterSeconds };
  }
}

/** Returns what a request failed with, in the form of the column `reason`. */
export function reasonOfFailure(error: ProblemError | NoAnswerError): string {
  if (error instanceof NoAnswerError) return reasonOf(`${markOf(error)}: ${whyNoAnswer(error.cause, error.status)}`);
  const { status, code, title, detail = title, fields, requestId } = error;
  const named = Object.entries(fields).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  const about = named.length > 0 ? ` [${named.join('; ')}]` : '';
  return reasonOf(`${status} ${code}: ${detail}${about} (request ${requestId})`);
}

/** Returns a text in the form of the column `reason`: in ASCII, which a database of any encoding can store. */
export function reasonOf(text: string): string {
  return text
    .replaceAll(/\P{ASCII}/gu, '?')
    .replaceAll(/\p{Control}+/gu, ' ')
    .slice(0, MAX_REASON);
}

function outcomeOfProblem(problem: ProblemError): Outcome {
  const { status, retryAfterSeconds } = problem;
  const reason = reasonOfFailure(problem);
  if (!isOfAll(reason) && status < FAILING_FROM_STATUS && !TEMPORARY_STATUSES.includes(status))
    return { state: 'refused', reason };
  return { state: 'waiting', reason, retryAfterSeconds, isFree: isOfAll(reason) && problem.written === 'no' };
}

/** Returns how the reason begins: another web server, at a wrong address, has no such page. */
function markOf({ status, retryAfterSeconds }: NoAnswerError): string {
  if (retryAfterSeconds !== undefined) return 'wait asked for';
  return status === 404 || status === 405 ? `${status} ${UNANSWERED}` : UNANSWERED;
}

import { NoAnswerError, type ProblemError } from '../errors.ts';
import { whyNoAnswer } from '../not-sent.ts';
import { CONFIGURATION_REASONS, PAUSE_REASONS } from '../outcomes.ts';

/** The length of the column `reason`; characters. */
const MAX_REASON = 1000;

/** The number of characters by which reasons are distinguished. */
const MARK = 4;

const UNANSWERED = 'no answer';

/** Returns the condition of rows whose reason begins like one of these. */
const like = (marks: readonly string[]) => `SUBSTR(reason, 1, ${MARK}) IN ('${marks.join("', '")}')`;

/** The condition of rows that wait because of the configuration. */
export const OF_CONFIGURATION = like(CONFIGURATION_REASONS);

/** The condition of rows that pause all leads until their next attempt. */
export const IS_PAUSE = like(PAUSE_REASONS);

/** Whether other leads would currently get the same response. */
export const isOfAll = (reason: string): boolean =>
  [...CONFIGURATION_REASONS, ...PAUSE_REASONS].includes(reason.slice(0, MARK));

/** Whether the service may be unavailable. */
export const isUnanswered = (reason: string): boolean => reason.startsWith(UNANSWERED);

/** Returns the cause of a failed request, in the form of the column `reason`. */
export function reasonOfFailure(error: ProblemError | NoAnswerError): string {
  if (error instanceof NoAnswerError) return toReason(`${retryMark(error)}: ${whyNoAnswer(error.cause, error.status)}`);
  const { status, code, title, detail = title, fields, requestId } = error;
  const named = Object.entries(fields).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  const about = named.length > 0 ? ` [${named.join('; ')}]` : '';
  return toReason(`${status} ${code}: ${detail}${about} (request ${requestId})`);
}

/** Returns a text in the form of the column `reason`: in ASCII, which a database of any encoding can store. */
export function toReason(text: string): string {
  return text
    .replaceAll(/\P{ASCII}/gu, '?')
    .replaceAll(/\p{Control}+/gu, ' ')
    .slice(0, MAX_REASON);
}

/** Returns the beginning of the reason. Another web server, at a wrong address, answers 404 or 405. */
function retryMark({ status, retryAfterSeconds }: NoAnswerError): string {
  if (retryAfterSeconds !== undefined) return 'wait asked for';
  return status === 404 || status === 405 ? `${status} ${UNANSWERED}` : UNANSWERED;
}

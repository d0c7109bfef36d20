import type { CreatedLead } from '../client.ts';
import { LeadAlreadyOpenError, LeadIntakeError, ProblemError } from '../errors.ts';

/** What came of sending a lead. */
export type Outcome =
  | { readonly state: 'delivered' | 'already_open'; readonly leadId: string | undefined }
  /** Repeating changes nothing: it needs a person. */
  | { readonly state: 'refused'; readonly reason: string }
  | {
      /** It is to be sent again. */
      readonly state: 'waiting';
      readonly reason: string;
      readonly retryAfterSeconds?: number | undefined;
      /** Whether any other lead would get the same now, or might: the service is away. */
      readonly holdsForOthers: 'yes' | 'perhaps' | 'no';
    };

/** As long as the column is; characters. */
const MAX_REASON = 1000;

/** The column of the lead's id has no more. */
const UUID_LENGTH = 36;

/** What keeps all leads of the key back, until a person does something about the key. */
export const STATUSES_OF_THE_KEY = [401, 402, 403];

/** What the answer to a creation means for the lead. */
export async function outcomeOf(creation: Promise<CreatedLead>): Promise<Outcome> {
  try {
    return { state: 'delivered', leadId: (await creation).lead.id };
  } catch (error) {
    if (error instanceof LeadAlreadyOpenError) {
      const { existingLeadId: id } = error;
      return { state: 'already_open', leadId: id?.length === UUID_LENGTH ? id : undefined };
    }
    if (error instanceof ProblemError) return outcomeOfProblem(error);
    if (!(error instanceof LeadIntakeError)) throw error;
    return { state: 'waiting', reason: reasonOf(`no answer: ${whyNone(error.cause)}`), holdsForOthers: 'perhaps' };
  }
}

/** A text as a reason of the table. */
export function reasonOf(text: string): string {
  const printable = text.replaceAll(/[\p{Control}\p{Surrogate}]+/gu, ' ');
  return [...printable].slice(0, MAX_REASON).join('');
}

function outcomeOfProblem(problem: ProblemError): Outcome {
  const { status, code, title, detail = title, fields, requestId, retryAfterSeconds } = problem;
  const named = Object.entries(fields).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  const about = named.length > 0 ? ` [${named.join('; ')}]` : '';
  const reason = reasonOf(`${status} ${code}: ${detail}${about} (request ${requestId})`);
  const isForAll = status === 429 || STATUSES_OF_THE_KEY.includes(status);
  if (!isForAll && status < 500 && status !== 408) return { state: 'refused', reason };
  return { state: 'waiting', reason, retryAfterSeconds, holdsForOthers: isForAll ? 'yes' : 'no' };
}

/** Why there was no answer, without addresses: the code that Node gives it, or else what the client says. */
function whyNone(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown';
  const { code } = (cause.cause ?? {}) as { code?: unknown };
  if (typeof code === 'string') return code;
  return cause.name === 'Error' ? cause.message : cause.name;
}

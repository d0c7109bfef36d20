import { isDeepStrictEqual } from 'node:util';
import {
  type CreatedLead,
  type Lead,
  LeadAlreadyOpenError,
  LeadIntakeError,
  ProblemError,
} from '../../../sdk/index.ts';
import { conflictingLeadId, type EventOf } from '../history.ts';

/** The maximum delay that a busy machine may add; milliseconds. */
const LATE_BY_MS = 2500;

/** By how much a timer may fire early; milliseconds. */
const EARLY_BY_MS = 5;

/** The outcome of a call of the SDK. */
export interface SdkOutcome {
  readonly result?: unknown;
  readonly error?: LeadIntakeError;
}

/** A call of the SDK, with every request that the SDK sent for it. */
export interface SdkCall {
  readonly attempts: readonly EventOf<'request'>[];
  readonly outcome: SdkOutcome;
  /** The deadline of one request, including all of its attempts. */
  readonly deadlineMs: number;
  readonly tookMs: number;
}

/**
 * Compares the outcome of an SDK call with the responses to its attempts. Whether `written: no` was correct is not checked
 * here: the check of the leads does that.
 */
export function sdkViolations({ attempts, outcome, deadlineMs, tookMs }: SdkCall): string[] {
  const violations = [
    ...earlyRetries(attempts),
    ...(outcome.error ? ofError(attempts, outcome.error) : ofResult(attempts, outcome)),
  ];
  // A list has a deadline for each of its pages.
  const pages = attempts.filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200).length;
  if (tookMs > deadlineMs * (pages + 1) + LATE_BY_MS) violations.push(`took ${Math.round(tookMs)} of ${deadlineMs} ms`);
  const [{ operation, studioId } = {}] = attempts;
  return violations.map((what) => `the SDK, called for ${JSON.stringify(operation)} in ${studioId}, ${what}`);
}

/** Attempts that are sent before `retry-after` has passed. */
function earlyRetries(attempts: readonly EventOf<'request'>[]): string[] {
  return attempts.slice(1).flatMap(({ span }, index) => {
    const before = attempts[index] as EventOf<'request'>;
    const seconds = Number(before.answer?.headers.get('retry-after') ?? 0);
    const waitedMs = span.begin - before.span.end;
    return waitedMs < seconds * 1000 - EARLY_BY_MS
      ? [`retries after ${waitedMs} ms, with a retry-after of ${seconds} s`]
      : [];
  });
}

function ofResult(attempts: readonly EventOf<'request'>[], { result }: SdkOutcome): string[] {
  const last = attempts.at(-1);
  const bodies = attempts.flatMap(({ answer }) => (answer && answer.status < 300 ? [JSON.parse(answer.text)] : []));
  if (last?.operation.name === 'create') {
    const { lead, replayed, idempotencyKey } = result as CreatedLead;
    const isSame =
      last.answer?.status === 201 &&
      isDeepStrictEqual(lead, bodies.at(-1).lead) &&
      replayed === last.answer.headers.has('idempotent-replayed') &&
      idempotencyKey === last.operation.lead.idempotencyKey;
    return isSame ? [] : [`returns ${JSON.stringify(result)} for the response ${last.answer?.text}`];
  }
  const ids = (leads: readonly Lead[]) => leads.map(({ id }) => id).join();
  const listed = ids(bodies.flatMap(({ leads }) => leads));
  return ids(result as Lead[]) === listed ? [] : [`lists ${ids(result as Lead[])} for the responses ${listed}`];
}

function ofError(attempts: readonly EventOf<'request'>[], error: LeadIntakeError): string[] {
  if (!(error instanceof LeadIntakeError)) return [`throws ${(error as Error).stack}`];
  const violations: string[] = [];
  const last = attempts.at(-1)?.answer;
  if (error instanceof ProblemError && (error.code !== last?.code || error.status !== last.status))
    violations.push(`throws ${error.status} ${error.code} for the response ${last?.text}`);
  if (error instanceof LeadAlreadyOpenError) {
    const existingLeadId = conflictingLeadId(last);
    if (error.existingLeadId !== existingLeadId)
      violations.push(`throws the conflicting lead ${error.existingLeadId} for ${existingLeadId}`);
  }
  const isOpen = attempts.some(
    ({ answer }) => !answer || (answer.status >= 500 && answer.code !== 'integration_rate_unavailable'),
  );
  if (error.written !== 'no' && !isOpen)
    violations.push('reports an unknown outcome, although each attempt was answered');
  if (attempts.at(-1)?.operation.name === 'create' && error.attempts !== attempts.length)
    violations.push(`reports ${error.attempts} attempts for ${attempts.length}`);
  return violations;
}

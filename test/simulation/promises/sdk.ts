import { isDeepStrictEqual } from 'node:util';
import {
  type CreatedLead,
  type Lead,
  LeadAlreadyOpenError,
  LeadIntakeError,
  ProblemError,
} from '../../../sdk/index.ts';
import { conflictingLeadId, type EventOf } from '../history.ts';

/** How much a call may exceed its deadline, for parsing and comparing; milliseconds. */
const LATE_BY_MS = 100;

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
 * Compares the outcome of an SDK call with the responses to its attempts. Whether `written: no` was correct is left to the check
 * of the leads.
 */
export function sdkViolations({ attempts, outcome, deadlineMs, tookMs }: SdkCall): string[] {
  const { result, error } = outcome;
  const found = error ? checkError(attempts, error) : checkResult(attempts, result);
  const violations = [...earlyRetries(attempts), ...found];
  // A list has a deadline for each of its pages.
  const pages = attempts.filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200).length;
  if (tookMs > deadlineMs * (pages + 1) + LATE_BY_MS) violations.push(`took ${Math.round(tookMs)} of ${deadlineMs} ms`);
  const [{ operation, studioId } = {}] = attempts;
  return violations.map((what) => `the SDK, called for ${JSON.stringify(operation)} in ${studioId}, ${what}`);
}

/** Returns attempts that are sent before `retry-after` has passed. */
function earlyRetries(attempts: readonly EventOf<'request'>[]): string[] {
  return attempts.slice(1).flatMap(({ span }, index) => {
    const before = attempts[index] as EventOf<'request'>;
    const seconds = Number(before.answer?.headers.get('retry-after') ?? 0);
    const waitedMs = span.begin - before.span.end;
    return waitedMs < seconds * 1000 ? [`retries after ${waitedMs} ms, with a retry-after of ${seconds} s`] : [];
  });
}

function checkResult(attempts: readonly EventOf<'request'>[], result: unknown): string[] {
  const last = attempts.at(-1);
  const bodies = attempts.flatMap(({ answer }) => (answer && answer.status < 300 ? [JSON.parse(answer.text)] : []));
  const { operation, answer } = last ?? {};
  const received = bodies.flatMap(({ leads = [] }: { leads?: Lead[] }) => leads);
  if (operation?.name !== 'create')
    return isDeepStrictEqual(
      (result as Lead[]).map(({ id }) => id),
      received.map(({ id }) => id),
    )
      ? []
      : ['returns other leads than the pages had'];
  const { lead, replayed, idempotencyKey } = result as CreatedLead;
  const returned = [lead, replayed, idempotencyKey, 201];
  const expected = [
    bodies.at(-1)?.lead,
    answer?.headers.has('idempotent-replayed'),
    operation.lead.idempotencyKey,
    answer?.status,
  ];
  return isDeepStrictEqual(returned, expected) ? [] : [`returns ${JSON.stringify(result)} for ${answer?.text}`];
}

function checkError(attempts: readonly EventOf<'request'>[], error: LeadIntakeError): string[] {
  if (!(error instanceof LeadIntakeError)) return [`throws ${(error as Error).stack}`];
  const violations: string[] = [];
  const last = attempts.at(-1)?.answer;
  if (error instanceof ProblemError && (error.code !== last?.code || error.status !== last.status))
    violations.push(`throws ${error.status} ${error.code} for the response ${last?.text}`);
  const existingLeadId = conflictingLeadId(last);
  if (error instanceof LeadAlreadyOpenError && error.existingLeadId !== existingLeadId)
    violations.push(`throws the conflicting lead ${error.existingLeadId} for ${existingLeadId}`);
  const isUncertain = attempts.some(
    ({ answer }) => !answer || (answer.status >= 500 && answer.code !== 'integration_rate_unavailable'),
  );
  if (error.written !== 'no' && !isUncertain)
    violations.push('reports an unknown outcome, although each attempt was answered');
  if (attempts.at(-1)?.operation.name === 'create' && error.attempts !== attempts.length)
    violations.push(`reports ${error.attempts} attempts for ${attempts.length}`);
  return violations;
}

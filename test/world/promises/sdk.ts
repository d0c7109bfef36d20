import { isDeepStrictEqual } from 'node:util';
import {
  type CreatedLead,
  type Lead,
  LeadAlreadyOpenError,
  LeadIntakeError,
  ProblemError,
} from '../../../sdk/index.ts';
import type { EventOf } from '../history.ts';

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
export function brokenOfCall({ attempts, outcome, deadlineMs, tookMs }: SdkCall): string[] {
  const broken = [
    ...hasty(attempts),
    ...(outcome.error ? ofError(attempts, outcome.error) : ofResult(attempts, outcome)),
  ];
  // A list has a deadline for each of its pages.
  const pages = attempts.filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200).length;
  if (tookMs > deadlineMs * (pages + 1) + LATE_BY_MS) broken.push(`took ${Math.round(tookMs)} of ${deadlineMs} ms`);
  const [{ operation, studioId } = {}] = attempts;
  return broken.map((what) => `the SDK, asked for ${JSON.stringify(operation)} in ${studioId}, ${what}`);
}

/** Attempts that are sent before `retry-after` has passed. */
function hasty(attempts: readonly EventOf<'request'>[]): string[] {
  return attempts.slice(1).flatMap(({ span }, index) => {
    const before = attempts[index] as EventOf<'request'>;
    const seconds = Number(before.answer?.headers.get('retry-after') ?? 0);
    const waitedMs = span.begin - before.span.end;
    return waitedMs < seconds * 1000 - EARLY_BY_MS
      ? [`comes again after ${waitedMs} ms, told to wait for ${seconds} s`]
      : [];
  });
}

function ofResult(attempts: readonly EventOf<'request'>[], { result }: SdkOutcome): string[] {
  const last = attempts.at(-1);
  const told = attempts.flatMap(({ answer }) => (answer && answer.status < 300 ? [JSON.parse(answer.text)] : []));
  if (last?.operation.name === 'create') {
    const { lead, replayed, idempotencyKey } = result as CreatedLead;
    const isTold =
      last.answer?.status === 201 &&
      isDeepStrictEqual(lead, told.at(-1).lead) &&
      replayed === last.answer.headers.has('idempotent-replayed') &&
      idempotencyKey === last.operation.lead.idempotencyKey;
    return isTold ? [] : [`tells of ${JSON.stringify(result)}, answered ${last.answer?.text}`];
  }
  const ids = (leads: readonly Lead[]) => leads.map(({ id }) => id).join();
  const listed = ids(told.flatMap(({ leads }) => leads));
  return ids(result as Lead[]) === listed ? [] : [`lists ${ids(result as Lead[])}, answered ${listed}`];
}

function ofError(attempts: readonly EventOf<'request'>[], error: LeadIntakeError): string[] {
  if (!(error instanceof LeadIntakeError)) return [`throws ${(error as Error).stack}`];
  const broken: string[] = [];
  const last = attempts.at(-1)?.answer;
  if (error instanceof ProblemError && (error.code !== last?.code || error.status !== last.status))
    broken.push(`tells of ${error.status} ${error.code}, answered ${last?.text}`);
  if (error instanceof LeadAlreadyOpenError) {
    const told = /\/([0-9a-f-]{36})>/.exec(last?.headers.get('link') ?? '')?.[1];
    if (error.existingLeadId !== told) broken.push(`tells of ${error.existingLeadId} in the way, answered ${told}`);
  }
  const isOpen = attempts.some(
    ({ answer }) => !answer || (answer.status >= 500 && answer.code !== 'integration_rate_unavailable'),
  );
  if (error.written !== 'no' && !isOpen) broken.push('does not know what became of it, answered each time');
  if (attempts.at(-1)?.operation.name === 'create' && error.attempts !== attempts.length)
    broken.push(`says that it was sent ${error.attempts} times, and was ${attempts.length} times`);
  return broken;
}

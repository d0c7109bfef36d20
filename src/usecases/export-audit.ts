import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import type { AuditEvent } from '../domain/audit.ts';
import { auditPosition, auditTokenAfter } from '../domain/cursor.ts';
import { CLOCKS_DIFFER_MS } from '../domain/new-id.ts';
import { Faults } from '../domain/refusal.ts';
import type { Changing } from './dependencies.ts';
import { eachStoredPage } from './requests.ts';

export interface ExportAuditQuery {
  /** Undefined: from the first. */
  readonly start: Date | undefined;
  /** Undefined: as late as possible. */
  readonly end: Date | undefined;
  /** Empty: from the beginning. */
  readonly resumeToken: string;
}

export interface ExportedEvents {
  readonly events: readonly AuditEvent[];
  /** Empty: this was the last part. */
  readonly resumeToken: string;
  readonly end: Date;
}

/**
 * Yields the audit events of a range of times, of all studios and of none, in the order of walkAuditEvents. It reads a part
 * only when requested. The range ends before any time that a new event can still have, so successive ranges miss none.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function* exportAuditEvents(
  { store, clock }: Changing,
  { start: from, end: to, resumeToken }: ExportAuditQuery,
): AsyncGenerator<ExportedEvents> {
  const faults = new Faults();
  const latest = new Date(clock().getTime() - CLOCKS_DIFFER_MS);
  const begun = resumeToken === '' ? undefined : auditPosition(resumeToken);
  if (resumeToken !== '' && !begun) faults.note('resumeToken', pageTokenFault(resumeToken) ?? 'must be unchanged');
  if (resumeToken !== '' && (from || to)) faults.note('resumeToken', 'must be empty with times');
  if (Number.isNaN(from?.getTime())) faults.note('startTime', 'must be a time from 1970 on');
  if (to && !(to <= latest)) faults.note('endTime', 'must be at least five minutes ago');
  const { start = from ?? new Date(0), end = to ?? latest } = begun ?? {};
  if (start > end) faults.note('endTime', 'must not be before startTime');
  faults.refuseIfAny();
  const parts = eachStoredPage((after) => store.walkAuditEvents({ start, end }, after), begun?.after);
  for await (const { events, next } of parts) {
    yield { events, resumeToken: next === null ? '' : auditTokenAfter({ start, end, after: next }), end };
    // A store may return without waiting for I/O.
    await yieldToEventLoop();
  }
}

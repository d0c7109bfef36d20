import type { DatabaseSync } from 'node:sqlite';
import type { AuditEvent } from '../../domain/audit.ts';
import type { Decision } from '../decisions/decision.ts';
import { appliedRequests } from './applied-requests.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';

/** A change of one record. */
interface ChangeOf<Found, Write, Outcome> {
  /** What its events are about. */
  readonly subject: Pick<AuditEvent, 'studioId'> & Partial<Pick<AuditEvent, 'leadId' | 'apiKeyId'>>;
  readonly requestId?: string | undefined;
  read(): Found;
  decide(found: Found, isApplied: boolean): Decision<Outcome, Write>;
  /** Writes what was decided; returns another outcome if a constraint forbids it, and then it must have written nothing. */
  write(found: Found, write: Write): Outcome | undefined;
}

export type ApplyOnce = <Found, Write, Outcome>(change: ChangeOf<Found, Write, Outcome>) => Promise<Outcome>;

/** Returns a function that changes a record, with its events and the identity of the request, in one transaction. */
export function applyingOnce(database: DatabaseSync, commits: Pick<GroupCommit, 'write'>): ApplyOnce {
  const recordEvent = auditWriter(database);
  const requests = appliedRequests(database);
  return ({ subject, requestId, read, decide, write }) =>
    commits.write(() => {
      const found = read();
      const isApplied = requests.has(requestId);
      const decision = decide(found, isApplied);
      if (isApplied || !('write' in decision)) return decision.outcome;
      const refusal = decision.write === null ? undefined : write(found, decision.write);
      if (refusal !== undefined) return refusal;
      for (const event of decision.events ?? []) recordEvent({ ...subject, ...event });
      requests.add(requestId);
      return decision.outcome;
    });
}

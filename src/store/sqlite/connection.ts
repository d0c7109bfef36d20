import type { DatabaseSync } from 'node:sqlite';
import { type AuditEvent, actorIn } from '../../domain/audit.ts';
import type { DecidedEvent, Decision } from '../decisions/decision.ts';
import type { ReportUnreadable } from '../port/faults.ts';
import { credentialReader } from './credentials.ts';
import type { GroupCommit, sharedTransaction } from './group-commit.ts';
import { AUDIT_EVENTS } from './record-rows.ts';
import { preparingIn } from './rows.ts';

/** The number of newest requests that are recognised when they are repeated; each takes about 60 bytes. */
export const MAX_STORED_REQUESTS = 100_000;

/** What an event is about. */
type Subject = Pick<AuditEvent, 'studioId'> & Partial<Pick<AuditEvent, 'leadId' | 'apiKeyId'>>;

interface ChangeOf<Found, Write, Outcome> {
  /** Of its events. */
  readonly subject: Subject;
  readonly requestId?: string | undefined;
  read(): Found;
  decide(found: Found, isApplied: boolean): Decision<Outcome, Write>;
  /** Writes what was decided; returns another outcome if a constraint forbids it, and then it must have written nothing. */
  write(write: Write, found: Found): Outcome | undefined;
}

/** An open database, for the parts of the adapter. */
export type Connection = ReturnType<typeof connectionTo>;

/**
 * @param reads the transaction that consecutive reads share
 * @param report called for each unreadable record that a call skips
 */
export function connectionTo(
  database: DatabaseSync,
  reads: ReturnType<typeof sharedTransaction>,
  plainCommits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
) {
  const prepare = preparingIn(database);
  const { findCredential, forgetCredentials } = credentialReader(prepare, reads.count, report);
  const commits: typeof plainCommits = {
    write: (body, waitMs) =>
      plainCommits.write(() => {
        forgetCredentials();
        return body();
      }, waitMs),
  };
  const selectRequest = prepare("SELECT 1 FROM applied_requests WHERE id = unhex(?, '-')");
  const insertRequest = prepare("INSERT INTO applied_requests (id) VALUES (unhex(?, '-'))");
  const removeOldRequests = prepare('DELETE FROM applied_requests WHERE number <= ?');
  const insertEvent = prepare(`INSERT ${AUDIT_EVENTS.into()}`);

  /** Stores an event; to be called within a write. */
  function recordEvent({ time, ...event }: DecidedEvent & Subject): void {
    const nothing = { leadId: null, apiKeyId: null, from: null, to: null };
    insertEvent.run({ ...nothing, ...event, ...actorIn(event), time: time.getTime() });
  }

  /**
   * Whether a caller's request took effect. Within a process the outcome of a commit is known, so only a request that its
   * caller may repeat has to be stored, in the transaction of its change.
   */
  const isApplied = (requestId: string | undefined): boolean =>
    requestId !== undefined && selectRequest.get(requestId) !== undefined;

  return {
    database,
    prepare,
    commits,
    /** For all writes that change nothing of a credential but when its key was last used. */
    plainCommits,
    findCredential,
    report,
    recordEvent,
    isApplied,

    /** Changes a record, with its events and the identity of the request, in one transaction. */
    applyOnce: <Found, Write, Outcome>(change: ChangeOf<Found, Write, Outcome>): Promise<Outcome> =>
      // What is about a lead changes nothing of a credential.
      (change.subject.leadId ? plainCommits : commits).write(() => {
        const { subject, requestId } = change;
        const found = change.read();
        const isRepeated = isApplied(requestId);
        const decision = change.decide(found, isRepeated);
        if (isRepeated || !('write' in decision)) return decision.outcome;
        const refusal = decision.write === null ? undefined : change.write(decision.write, found);
        if (refusal !== undefined) return refusal;
        for (const event of decision.events ?? []) recordEvent({ ...subject, ...event });
        if (requestId !== undefined) {
          const { lastInsertRowid } = insertRequest.run(requestId);
          removeOldRequests.run(Number(lastInsertRowid) - MAX_STORED_REQUESTS);
        }
        return decision.outcome;
      }),
  };
}

import type { DatabaseSync } from 'node:sqlite';
import { actorIn } from '../../domain/audit.ts';
import type { DecidedEvent, Decision } from '../decisions/decision.ts';
import type { ReportUnreadable } from '../port/faults.ts';
import { credentialReader } from './credentials.ts';
import type { sharedTransaction } from './group-commit.ts';
import { AUDIT_EVENTS } from './record-rows.ts';
import { preparingIn } from './rows.ts';

/** The number of newest requests whose repetitions are deduplicated; each takes about 60 bytes. */
export const MAX_STORED_REQUESTS = 100_000;

/** The record of an event. */
interface Subject {
  readonly studioId: string;
  readonly leadId?: string | null;
  readonly apiKeyId?: string | null;
}

export interface Commits {
  write<Result>(body: () => Result, waitMs?: number): Promise<Result>;
}

interface ChangeOf<Found, Write, Outcome> {
  /** The record of its events. */
  readonly subject: Subject;
  readonly requestId?: string | undefined;
  read(): Found;
  decide(found: Found, isApplied: boolean): Decision<Outcome, Write>;
  /** Writes what was decided. If a constraint forbids that, writes nothing and returns another outcome. */
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
  plainCommits: Commits,
  report: ReportUnreadable = () => {},
) {
  const prepare = preparingIn(database);
  const { findCredential, forgetCredentials } = credentialReader(prepare, reads.count, report);
  const commits: Commits = {
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

  /** Stores an event. Must be called within a write. */
  function recordEvent({ time, ...event }: DecidedEvent & Subject): void {
    const nothing = { leadId: null, apiKeyId: null, from: null, to: null };
    insertEvent.run({ ...nothing, ...event, ...actorIn(event), time: time.getTime() });
  }

  /**
   * Whether a caller's request took effect. A process knows the outcome of its commits, so only a repeatable request has
   * to be stored, in the transaction of its change.
   */
  const isApplied = (requestId: string | undefined): boolean =>
    requestId !== undefined && selectRequest.get(requestId) !== undefined;

  return {
    database,
    prepare,
    commits,
    /** For writes that change no credential except the time of a key's last use. */
    plainCommits,
    findCredential,
    report,
    recordEvent,
    isApplied,

    /** Changes a record, with its events and the identity of the request, in one transaction. */
    applyOnce: <Found, Write, Outcome>(change: ChangeOf<Found, Write, Outcome>): Promise<Outcome> =>
      // Lead changes never affect credentials.
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

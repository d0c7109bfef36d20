import type { DatabaseSync } from 'node:sqlite';
import { type AuditEvent, actorIn, MAX_AUDIT_EVENTS } from '../../domain/audit.ts';
import { readableOrNull } from '../checked.ts';
import { type DecidedEvent, deploymentEvent, eventOfAct } from '../decisions.ts';
import type { AuditStore, ReportUnreadable } from '../store.ts';
import type { GroupCommit } from './group-commit.ts';
import { auditEventOf, EVENT_COLUMNS } from './rows.ts';

/** The maximum number of events that are read for a list, if some are unreadable. */
const MAX_READ = 10 * MAX_AUDIT_EVENTS;

/** The number of events that a walk reads at a time. */
const MAX_WALKED = 1000;

interface Recorded {
  readonly database: DatabaseSync;
  readonly commits: Pick<GroupCommit, 'write'>;
  readonly recordEvent: (event: NewEvent) => void;
  readonly report: ReportUnreadable;
}

/** The audit log, in SQLite. An event is inserted in the transaction of its change. */
export function sqliteAudit({ database, commits, recordEvent, report }: Recorded): AuditStore {
  const select = database.prepare(`
    SELECT ${EVENT_COLUMNS} FROM audit_events WHERE studio_id = ? AND lead_id IS ? ORDER BY number DESC LIMIT ${MAX_READ}`);
  // Numbers only grow, so they are in the order of the commits.
  const selectPart = database.prepare(`
    SELECT number, ${EVENT_COLUMNS} FROM audit_events WHERE number > ? ORDER BY number LIMIT ${MAX_WALKED}`);
  const selectStudio = database.prepare('SELECT 1 FROM studios WHERE id = ?');
  return {
    recordAct: (studioId, act, by) =>
      commits.write(() => {
        if (studioId === null) recordEvent(deploymentEvent(by, act));
        else if (selectStudio.get(studioId)) recordEvent({ studioId, ...eventOfAct(by, act) });
      }),

    async walkAuditEvents({ start, end }, after) {
      const rows = selectPart.all(after === null ? 0 : Number(after));
      const events = rows.flatMap((row) => readableOrNull(auditEventOf(row), report) ?? []);
      const last = rows.length === MAX_WALKED ? rows.at(-1) : undefined;
      return { events: events.filter(({ time }) => time >= start && time < end), next: last ? `${last.number}` : null };
    },

    async listAuditEvents(studioId, leadId) {
      const events: AuditEvent[] = [];
      for (const row of select.iterate(studioId, leadId)) {
        const event = readableOrNull(auditEventOf(row), report);
        if (event) events.push(event);
        if (events.length === MAX_AUDIT_EVENTS) break;
      }
      return events;
    },
  };
}

/** An event of a studio, or of one of its leads or keys. */
type NewEvent = DecidedEvent & Pick<AuditEvent, 'studioId'> & Partial<Pick<AuditEvent, 'leadId' | 'apiKeyId'>>;

const NOTHING = { leadId: null, apiKeyId: null, from: null, to: null } as const;

/** Returns a function that stores an event; to be called within a write. */
export function auditWriter(database: DatabaseSync): (event: NewEvent) => void {
  const insert = database.prepare(`
    INSERT INTO audit_events (studio_id, lead_id, api_key_id, action, member_id, caller, call_id, time, from_value, to_value)
    VALUES (:studioId, :leadId, :apiKeyId, :action, :memberId, :caller, :callId, :time, :from, :to)`);
  return ({ time, ...event }) => void insert.run({ ...NOTHING, ...event, ...actorIn(event), time: time.getTime() });
}

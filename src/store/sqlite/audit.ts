import type { DatabaseSync } from 'node:sqlite';
import { type AuditEvent, MAX_AUDIT_EVENTS } from '../../domain/audit.ts';
import { readableOrNull } from '../checked.ts';
import type { DecidedEvent } from '../decisions.ts';
import type { AuditStore, ReportUnreadable } from '../store.ts';
import { auditEventOf, EVENT_COLUMNS } from './rows.ts';

/** The maximum number of events that are read for a list, if some are unreadable. */
const MAX_READ = 10 * MAX_AUDIT_EVENTS;

/** The audit log, in SQLite. An event is inserted in the transaction of its change. */
export function sqliteAudit(database: DatabaseSync, report: ReportUnreadable): AuditStore {
  const select = database.prepare(`
    SELECT ${EVENT_COLUMNS} FROM audit_events WHERE studio_id = ? AND lead_id IS ? ORDER BY number DESC LIMIT ${MAX_READ}`);
  return {
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
    INSERT INTO audit_events (studio_id, lead_id, api_key_id, action, member_id, caller, time, from_value, to_value)
    VALUES (:studioId, :leadId, :apiKeyId, :action, :memberId, :caller, :time, :from, :to)`);
  return ({ caller = null, time, ...event }) => void insert.run({ ...NOTHING, ...event, caller, time: time.getTime() });
}

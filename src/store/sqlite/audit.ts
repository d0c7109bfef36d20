import { type AuditEvent, MAX_AUDIT_EVENTS, OF_DEPLOYMENT } from '../../domain/audit.ts';
import { checked, readableOrNull } from '../checked.ts';
import { eventOfAct } from '../decisions/decision.ts';
import type { AuditStore } from '../port/audit.ts';
import { AUDIT_EVENT } from '../records.ts';
import type { Connection } from './connection.ts';
import { AUDIT_EVENTS } from './record-rows.ts';
import type { ListRow } from './rows.ts';

/** The maximum number of events read for a list in which some are unreadable. */
const MAX_READ = 10 * MAX_AUDIT_EVENTS;

/** The number of events that a walk reads at a time. */
const MAX_WALKED = 1000;

/** The audit log, in SQLite. An event is inserted in the transaction of its change. */
export function sqliteAudit({ prepare, plainCommits, recordEvent, report }: Connection): AuditStore {
  const { selected, width } = AUDIT_EVENTS;
  const select = prepare(`
    SELECT ${selected} FROM audit_events WHERE studio_id = ? AND lead_id IS ? ORDER BY number DESC LIMIT ${MAX_READ}`);
  // Numbers only grow, so they are in the order of the commits.
  const selectPart = prepare(`
    SELECT ${selected}, number FROM audit_events WHERE number > ? ORDER BY number LIMIT ${MAX_WALKED}`);
  const selectStudio = prepare('SELECT 1 FROM studios WHERE id = ?');
  const eventIn = (row: ListRow) => readableOrNull(checked(AUDIT_EVENT, AUDIT_EVENTS.read(row)), report);
  return {
    recordAct: (studioId, act, by) =>
      plainCommits.write(() => {
        const isThere = studioId === OF_DEPLOYMENT || selectStudio.get(studioId);
        if (isThere) recordEvent({ studioId, ...eventOfAct(by, act) });
      }),

    async walkAuditEvents({ start, end }, after) {
      const rows = selectPart.all(after === null ? 0 : Number(after));
      const events = rows.flatMap((row) => eventIn(row) ?? []);
      const last = rows.length === MAX_WALKED ? rows.at(-1) : undefined;
      return { events: events.filter(({ time }) => time >= start && time < end), next: last ? `${last[width]}` : null };
    },

    async listAuditEvents(studioId, leadId) {
      const events: AuditEvent[] = [];
      for (const row of select.iterate(studioId, leadId)) {
        const event = eventIn(row);
        if (event) events.push(event);
        if (events.length === MAX_AUDIT_EVENTS) break;
      }
      return events;
    },
  };
}

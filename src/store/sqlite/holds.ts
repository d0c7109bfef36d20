import { checkedHold } from '../checked.ts';
import { decideHold } from '../decisions/holds.ts';
import type { HoldStore } from '../store.ts';
import type { Connection } from './connection.ts';
import { HOLD_OF_LEAD, holdIn, type Row, STUDIO_FIELDS } from './rows.ts';

/** Puts and removes holds, in SQLite. */
export function sqliteHolds({ database, studios, applyOnce }: Connection): HoldStore {
  const ofLead = {
    select: database.prepare(`
      SELECT number AS key, ${HOLD_OF_LEAD} AS hold FROM leads
      WHERE studio_number = ? AND id = unhex(?, '-') AND erased_at IS NULL`),
    put: database.prepare('REPLACE INTO held_leads (lead_number, reason, created_at) VALUES (?, ?, ?)'),
    remove: database.prepare('DELETE FROM held_leads WHERE lead_number = ?'),
  };
  const ofStudio = {
    select: database.prepare(`SELECT id AS key, ${STUDIO_FIELDS} FROM studios WHERE id = ?`),
    put: database.prepare('REPLACE INTO held_studios (studio_id, reason, created_at) VALUES (?, ?, ?)'),
    remove: database.prepare('DELETE FROM held_studios WHERE studio_id = ?'),
  };
  return {
    putHold(put) {
      const { studioId, leadId, requestId } = put;
      const { select, put: insert, remove } = leadId === null ? ofStudio : ofLead;
      return applyOnce({
        subject: { studioId, leadId },
        requestId,
        read: (): Row | undefined =>
          leadId === null ? select.get(studioId) : select.get(studios.inWrite(studioId) ?? null, leadId),
        decide: (row, isApplied) => decideHold(row ? { hold: checkedHold(holdIn(row.hold)) } : null, put, isApplied),
        write({ hold }, row) {
          const key = row?.key as string | number;
          if (hold) insert.run(key, hold.reason, hold.createdAt.getTime());
          else remove.run(key);
          return undefined;
        },
      });
    },
  };
}

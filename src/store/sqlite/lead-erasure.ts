import type { DatabaseSync } from 'node:sqlite';
import { nextUpdate } from '../../domain/lead.ts';
import { readableOrNull, readableOrThrow } from '../checked.ts';
import type { LeadErasureStore, ReportUnreadable } from '../store.ts';
import { auditWriter } from './audit.ts';
import { contactClaims } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { changeMark } from './lead-changes.ts';
import { prepareLists } from './row-lists.ts';
import { erasedLeadOf, isErased, LEAD_COLUMNS } from './rows.ts';
import { hashesIn, idText } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

/**
 * Erasure of leads, in SQLite. `secure_delete` overwrites the data in the file, too, once the log is checkpointed.
 *
 * @param erased called after the commit
 */
export function sqliteLeadErasure(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  erased: () => void,
  report: ReportUnreadable,
): LeadErasureStore {
  const selectNext = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS} FROM leads WHERE studio_number = ? AND id > unhex(?, '-') ORDER BY id LIMIT ? + 0`,
  );
  const select = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS}, number, contact_keys FROM leads WHERE studio_number = ? AND id = unhex(?, '-')`,
  );
  const erase = database.prepare(`
    UPDATE leads SET
      display_name = '', contact_type = '', contact_value = '', source_id = NULL, note = NULL, original = NULL,
      contact_keys = x'', fingerprint = x'', fingerprint_version = 0,
      updated_at = ?1, erased_at = ?1, ${changeMark('erased', '?1')}
    WHERE number = ?2`);
  const claimed = contactClaims(database);
  // Scans all claims of a studio; only used when the lead's own list of claims is unreadable.
  const freeAll = database.prepare('DELETE FROM contact_claims WHERE studio_number = ? AND lead_number = ?');
  const forgetFormer = database.prepare('DELETE FROM former_contacts WHERE lead_number = ?');
  const studios = studioNumbers(database);
  const recordEvent = auditWriter(database);

  return {
    async eraseLead({ studioId, leadId, memberId, caller, now, expectedUpdatedAt }) {
      const outcome = await commits.write(() => {
        const studio = studios.inWrite(studioId);
        const row = studio === undefined ? undefined : select.get(studio, leadId);
        if (studio === undefined || !row) return { kind: 'not-found' } as const;
        const remaining = readableOrThrow(erasedLeadOf(studioId, row));
        if (!isErased(row)) {
          if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== remaining.updatedAt.getTime())
            return { kind: 'stale' } as const;
          const [number, contactKeys] = row.slice(-2) as [number, Uint8Array];
          const time = nextUpdate(remaining.updatedAt, now);
          const keys = hashesIn(contactKeys);
          if (keys) claimed.forget(studio, keys, number);
          else freeAll.run(studio, number);
          forgetFormer.run(number);
          erase.run(time.getTime(), number);
          recordEvent({ studioId, leadId, action: 'lead-erased', memberId, caller, time });
          return { kind: 'erased', lead: { ...remaining, updatedAt: time, erasedAt: time } } as const;
        }
        return { kind: 'erased', lead: remaining } as const;
      });
      if (outcome.kind === 'erased') erased();
      return outcome;
    },

    async walkErasedLeads(studioId, after, limit) {
      const studio = studios.of(studioId);
      const rows = studio === undefined ? [] : selectNext.all(studio, after ?? '', limit);
      const leads = rows.filter(isErased).flatMap((row) => readableOrNull(erasedLeadOf(studioId, row), report) ?? []);
      return { leads, next: rows.length < limit ? null : idText(rows.at(-1)?.[0] as string) };
    },
  };
}

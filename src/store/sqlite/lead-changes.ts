import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { ChangeKind, LeadChange } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { readFirstReadable } from '../read-first-readable.ts';
import type { LeadChangeStore, ReportUnreadable } from '../store.ts';
import type { GroupCommit } from './group-commit.ts';
import { prepareLists } from './row-lists.ts';
import { erasedLeadOf, isErased, LEAD_COLUMNS, leadOf, number } from './rows.ts';
import { idText } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

/**
 * The assignments of an UPDATE that mark a lead as changed. Kinds accumulate until they are acknowledged; a lead
 * without any that was never acknowledged was created.
 *
 * @param time the SQL parameter with the time of the change; milliseconds
 */
export const changeMark = (kind: ChangeKind, time: string): string => `
  revision = max(revision + 1, ${time}),
  changed_since = coalesce(changed_since, ${time}),
  change_kinds = json_set(
    CASE
      WHEN changed_since IS NULL THEN '{}'
      WHEN change_kinds IS NULL THEN json_object('created', created_at)
      WHEN json_valid(change_kinds) THEN change_kinds
      ELSE '{}'
    END, '$."${kind}"', ${time})`;

/** The change feed, in SQLite: a lead's mark is a part of its row. */
export function sqliteLeadChanges(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable,
): LeadChangeStore {
  const studios = studioNumbers(database);
  // The columns of leadOf come first.
  const select = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS}, ${number('revision')}, ${number('changed_since')}, change_kinds, studio_id
    FROM leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE changed_since IS NOT NULL ORDER BY changed_since, leads.number LIMIT ? + 0`,
  );
  const acknowledge = database.prepare(`
    UPDATE leads SET changed_since = NULL, change_kinds = NULL
    WHERE studio_number = ? AND id = unhex(?, '-') AND revision = ? AND changed_since IS NOT NULL`);
  const resend = prepareLists(
    database,
    `UPDATE leads SET ${changeMark('resent', '?1')} WHERE number IN (
      SELECT number FROM leads WHERE studio_number = ?2 AND id > unhex(?3, '-') ORDER BY id LIMIT ?4 + 0
    ) RETURNING hex(id)`,
  );
  const measure = prepareLists(
    database,
    `SELECT count(*), min(changed_since) FROM (
      SELECT changed_since FROM leads WHERE changed_since IS NOT NULL ORDER BY changed_since LIMIT ? + 0)`,
  );
  const oldestCreation = prepareLists(
    database,
    'SELECT created_at FROM leads WHERE changed_since IS NOT NULL ORDER BY changed_since, number LIMIT 1',
  );

  return {
    listLeadChanges: async (limit) =>
      readFirstReadable(
        limit,
        (count) => select.all(count),
        (row) => readableOrNull(leadChangeOf(row), report),
      ),

    acknowledgeLeadChanges: (acknowledgements) =>
      commits.write(() => {
        let leads = 0;
        for (const { studioId, leadId, revision } of acknowledgements) {
          const studio = studios.inWrite(studioId);
          if (studio !== undefined) leads += Number(acknowledge.run(studio, leadId, revision).changes);
        }
        return leads;
      }),

    resendLeads: (studioId, after, limit, now) =>
      commits.write(() => {
        const studio = studios.inWrite(studioId);
        if (studio === undefined) return { leads: 0, next: null };
        const ids = resend.all(now.getTime(), studio, after ?? '', limit).map(([id]) => idText(id as string));
        return { leads: ids.length, next: ids.length < limit ? null : (ids.sort().at(-1) ?? null) };
      }),

    // The migration marked all leads.

    async measureLeadChanges(bound) {
      const [leads, since] = measure.get(bound) as [number, number | null];
      // 0: written by an earlier release, which stored no time.
      const first = since === 0 ? (oldestCreation.get()?.[0] as number) : since;
      return { leads, since: first === null ? null : new Date(first) };
    },
  };
}

function leadChangeOf(row: readonly SQLOutputValue[]): Checked<LeadChange> {
  const [revision, since, kinds, studioId] = row.slice(-4);
  const lead = isErased(row) ? erasedLeadOf(studioId as string, row) : leadOf(studioId as string, row);
  return checkedLeadChange(lead, {
    revision,
    // 0: written by an earlier release, which stored no time.
    since: since === 0 ? undefined : new Date(since as number),
    kinds: kindsIn(kinds as string | null, row),
  });
}

/** The unchecked time of each kind. */
function kindsIn(json: string | null, row: readonly SQLOutputValue[]): object {
  const created = row[7];
  try {
    const times = json === null ? { created } : Object(JSON.parse(json));
    return Object.fromEntries(Object.entries(times).map(([kind, ms]) => [kind, new Date(ms as number)]));
  } catch {
    return {};
  }
}

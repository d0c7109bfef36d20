import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChangeKind, LeadChange } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { FirstReadable } from '../first-readable.ts';
import type { LeadChangeStore, ReportUnreadable } from '../store.ts';
import type { GroupCommit } from './group-commit.ts';
import { prepareLists } from './row-lists.ts';
import { erasedLeadOf, isErased, LEAD_COLUMNS, leadOf, number } from './rows.ts';
import { idText, UUID_BYTES } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

/** Higher than every revision of this service. One that is higher could overflow, and starts again. */
const MAX_REVISION = 2 ** 52;

/**
 * The assignments of an UPDATE that mark a lead as changed. Kinds accumulate until they are acknowledged; a lead
 * without any that was never acknowledged was created.
 *
 * @param time the SQL parameter with the time of the change; milliseconds
 */
export const changeMark = (kind: ChangeKind, time: string): string => `
  revision = max(iif(revision < ${MAX_REVISION}, revision + 1, 0), ${time}),
  changed_since = coalesce(changed_since, ${time}),
  change_kinds = json_set(
    CASE
      WHEN changed_since IS NULL THEN '{}'
      WHEN change_kinds IS NULL THEN json_object('created', created_at)
      WHEN json_valid(change_kinds) THEN change_kinds
      ELSE '{}'
    END, '$."${kind}"', ${time})`;

type Row = readonly SQLOutputValue[];

/** The time of a lead's first unacknowledged change, and the lead's number; integers in text. */
type Position = readonly [since: string, number: string];

/** The change feed, in SQLite: a lead's mark is a part of its row. */
export function sqliteLeadChanges(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable,
): LeadChangeStore {
  const studios = studioNumbers(database);
  const selectWhere = (condition: string) =>
    // The columns of leadOf come first. The position is text, because a foreign number may be any integer.
    prepareLists(
      database,
      `SELECT ${LEAD_COLUMNS}, CAST(changed_since AS TEXT), CAST(leads.number AS TEXT), ${number('revision')},
        ${number('changed_since')}, change_kinds, studio_id
      FROM leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE changed_since IS NOT NULL ${condition} ORDER BY changed_since, leads.number LIMIT ? + 0`,
    );
  const selectFirst = selectWhere('');
  const selectBehind = selectWhere('AND (changed_since, leads.number) > (CAST(? AS INTEGER), CAST(? AS INTEGER))');
  const acknowledge = database.prepare(`
    UPDATE leads SET changed_since = NULL, change_kinds = NULL
    WHERE studio_number = ? AND id = unhex(?, '-') AND revision = ? AND changed_since IS NOT NULL`);
  // An id that is not a UUID cannot end a part.
  const resend = prepareLists(
    database,
    `UPDATE leads SET ${changeMark('resent', '?1')} WHERE number IN (
      SELECT number FROM leads WHERE studio_number = ?2 AND id > unhex(?3, '-') AND length(id) = ${UUID_BYTES}
      ORDER BY id LIMIT ?4 + 0
    ) RETURNING hex(id)`,
  );
  const count = prepareLists(
    database,
    'SELECT count(*) FROM (SELECT 1 FROM leads WHERE changed_since IS NOT NULL LIMIT ? + 0)',
  );
  const changesIn = (reportUnreadable: ReportUnreadable) =>
    new FirstReadable<Row, LeadChange, Position>({
      first: (limit) => selectFirst.all(limit),
      async behind(position, limit) {
        // Of many unreadable leads, only some are read at a time.
        await nextTurn();
        return position === null ? selectFirst.all(limit) : selectBehind.all(...position, limit);
      },
      positionOf: (row) => row.slice(-6, -4) as [string, string],
      check: (row) => readableOrNull(leadChangeOf(row), reportUnreadable),
    });
  const changes = changesIn(report);
  const oldest = changesIn(() => {});

  return {
    listLeadChanges: (limit) => changes.read(limit),

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
        if (studio === undefined) return { leads: 0, skipped: 0, next: null };
        const ids = resend.all(now.getTime(), studio, after ?? '', limit).map(([id]) => idText(id as string));
        return { leads: ids.length, skipped: 0, next: ids.length < limit ? null : (ids.sort().at(-1) ?? null) };
      }),

    async measureLeadChanges(bound) {
      const [first] = await oldest.read(1);
      return { leads: count.get(bound)?.[0] as number, since: first?.since ?? null };
    },
  };
}

function leadChangeOf(row: Row): Checked<LeadChange> {
  const [revision, since, kinds, studioId] = row.slice(-4);
  const lead = isErased(row) ? erasedLeadOf(studioId as string, row) : leadOf(studioId as string, row);
  return checkedLeadChange(lead, {
    revision,
    // 0: written by release 1.0, which stored no time.
    since: since === 0 ? undefined : new Date(since as number),
    kinds: kindsIn(kinds as string | null, row),
  });
}

/** The unchecked time of each kind. */
function kindsIn(json: string | null, row: Row): object {
  const created = row[7];
  try {
    const times = json === null ? { created } : Object(JSON.parse(json));
    return Object.fromEntries(Object.entries(times).map(([kind, ms]) => [kind, new Date(ms as number)]));
  } catch {
    return {};
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../../common/invariants.ts';
import type { Lead } from '../../domain/lead.ts';
import { type LeadChange, marked } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import type { LeadChangeStore, ReportUnreadable } from '../store.ts';
import type { Connection } from './connection.ts';
import {
  columns,
  enquiredLeadOf,
  erasedLeadOf,
  isErased,
  type ListRow,
  lastIdOfFull,
  MARKED_LEAD,
  markOf,
  markValues,
  prepareLists,
  SET_MARK,
  UUID_BYTES,
} from './rows.ts';

/** The number is text, because a foreign one may be any integer. */
const NUMBERED = columns({ ...MARKED_LEAD.sqlOf, number: 'CAST(leads.number AS TEXT)' });

/** So is the position. */
const CHANGE = columns({ ...NUMBERED.sqlOf, position: 'CAST(changed_since AS TEXT)', studioId: 'studio_id' });

/** The time of a lead's first unacknowledged change, and the lead's number; integers in text. */
type Position = readonly [since: string, number: string];

/** The change feed, in SQLite: a lead's mark is a part of its row. */
export function sqliteLeadChanges({ database, commits, studios, report }: Connection): LeadChangeStore {
  const selectWhere = (condition: string) =>
    prepareLists(
      database,
      `SELECT ${CHANGE.sql} FROM leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE changed_since IS NOT NULL ${condition} ORDER BY changed_since, leads.number LIMIT ? + 0`,
    );
  const selectFirst = selectWhere('');
  const selectBehind = selectWhere('AND (changed_since, leads.number) > (CAST(? AS INTEGER), CAST(? AS INTEGER))');
  const acknowledge = database.prepare(`
    UPDATE leads SET changed_since = NULL, change_kinds = NULL
    WHERE studio_number = ? AND id = unhex(?, '-') AND revision = ? AND changed_since IS NOT NULL`);
  // An id that is not a UUID cannot end a part.
  const selectToResend = prepareLists(
    database,
    `SELECT ${NUMBERED.sql} FROM leads
    WHERE studio_number = ? AND id > unhex(?, '-') AND length(id) = ${UUID_BYTES} ORDER BY id LIMIT ? + 0`,
  );
  const resend = database.prepare(`UPDATE leads SET ${SET_MARK} WHERE number = CAST(:number AS INTEGER)`);
  const count = prepareLists(
    database,
    'SELECT count(*) FROM (SELECT 1 FROM leads WHERE changed_since IS NOT NULL LIMIT ? + 0)',
  );
  const changesIn = (reportUnreadable: ReportUnreadable) =>
    firstReadable<ListRow, LeadChange, Position>({
      first: (limit) => selectFirst.all(limit),
      async behind(position, limit) {
        // Of many unreadable leads, only some are read at a time.
        await nextTurn();
        return position === null ? selectFirst.all(limit) : selectBehind.all(...position, limit);
      },
      positionOf: (row) => [row[CHANGE.at.position], row[CHANGE.at.number]] as [string, string],
      check: (row) => readableOrNull(leadChangeOf(row), reportUnreadable),
    });
  const readChanges = changesIn(report);
  const readOldest = changesIn(() => {});

  return {
    listLeadChanges: readChanges,

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
        const rows = selectToResend.all(studio, after ?? '', limit);
        for (const row of rows) {
          const mark = markValues(marked(markOf(row), 'resent', now));
          const { changes } = resend.run({ ...mark, number: row[NUMBERED.at.number] as string });
          assert(changes === 1, 'one_row_by_number');
        }
        return { leads: rows.length, skipped: 0, next: lastIdOfFull(rows, limit) };
      }),

    async measureLeadChanges(bound) {
      const [first] = await readOldest(1);
      return { leads: count.get(bound)?.[0] as number, since: first?.since ?? null };
    },
  };
}

function leadChangeOf(row: ListRow): Checked<LeadChange> {
  const studioId = row[CHANGE.at.studioId] as string;
  const { revision, since, kinds } = markOf(row);
  const lead = isErased(row) ? erasedLeadOf(studioId, row) : (enquiredLeadOf(studioId, row) as Checked<Lead>);
  // 0: written by release 1.0, which stored no time.
  return checkedLeadChange(lead, { revision, since: since?.getTime() === 0 ? undefined : since, kinds });
}

import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../../common/invariants.ts';
import { ofEachConsumer } from '../../domain/consumer.ts';
import type { Lead } from '../../domain/lead.ts';
import { DEFERRED, type LeadChange, marked, resentTo } from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import type { ResendStore, SomeLeads } from '../port/resending.ts';
import type { Connection } from './connection.ts';
import {
  columns,
  enquiredLeadOf,
  erasedLeadOf,
  isErased,
  type ListRow,
  lastIdOfFull,
  markOf,
  markValues,
  NUMBERED_LEAD,
  number,
  prepareLists,
  SET_MARK,
  UUID_BYTES,
} from './rows.ts';

/** Returns a function that reads leads that are to be sent again, and the id to continue after; null: there are no more. */
function leadsToSend(database: DatabaseSync) {
  // An id that is not a UUID cannot end a part.
  const select = (condition: string) =>
    prepareLists(
      database,
      `SELECT ${NUMBERED_LEAD.sql} FROM leads WHERE studio_number = ? AND length(id) = ${UUID_BYTES} AND ${condition}`,
    );
  const selectPage = select("id > unhex(?, '-') ORDER BY id LIMIT ? + 0");
  const selectSome = select("id IN (SELECT unhex(value, '-') FROM json_each(?))");
  return (studio: number, some: SomeLeads) => {
    if ('leadIds' in some) return { rows: selectSome.all(studio, JSON.stringify(some.leadIds)), next: null };
    const rows = selectPage.all(studio, some.after ?? '', some.limit);
    const isWanted = (row: ListRow) => isIn(new Date(row[NUMBERED_LEAD.at.updatedAt] as number), some.updated);
    return { rows: rows.filter(isWanted), next: lastIdOfFull(rows, some.limit) };
  };
}

/** A lead with an undistributed change is not among them: its delivery has the kinds of an older state. */
const DELIVERED = `
  FROM deliveries JOIN leads ON leads.number = deliveries.lead LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
  WHERE deliveries.consumer = ? AND due < ${DEFERRED} AND changed_since IS NULL`;

const CHANGE = columns({
  ...NUMBERED_LEAD.sqlOf,
  since: number('deliveries.since'),
  kinds: 'deliveries.kinds',
  attempts: 'attempts',
  position: 'CAST(due AS TEXT)',
  studioId: 'studio_id',
});

/** When a delivery is due, and the lead's number; integers in text. */
type Position = readonly [due: string, number: string];

/** Returns a function that reads the deliveries of a consumer. */
export function deliveriesIn({
  database,
  report,
}: Connection): (consumer: number) => (limit: number) => Promise<LeadChange[]> {
  const select = (condition: string) =>
    prepareLists(database, `SELECT ${CHANGE.sql} ${DELIVERED} ${condition} ORDER BY due, deliveries.lead LIMIT ? + 0`);
  const selectFirst = select('');
  const selectBehind = select('AND (due, deliveries.lead) > (CAST(? AS INTEGER), CAST(? AS INTEGER))');
  return ofEachConsumer((consumer) =>
    firstReadable<ListRow, LeadChange, Position>({
      first: (limit) => selectFirst.all(consumer, limit),
      async behind(position, limit) {
        // Of many unreadable leads, only some are read at a time.
        await nextTurn();
        return position === null ? selectFirst.all(consumer, limit) : selectBehind.all(consumer, ...position, limit);
      },
      positionOf: (row) => [row[CHANGE.at.position], row[CHANGE.at.number]] as [string, string],
      check: (row) => readableOrNull(leadChangeOf(row), report),
    }),
  );
}

/** The marks of the change feed, in SQLite: a lead's mark is a part of its row. */
export function sqliteLeadChanges({ database, plainCommits, studios }: Connection): ResendStore {
  const selectToResend = leadsToSend(database);
  const resend = database.prepare(`UPDATE leads SET ${SET_MARK} WHERE number = CAST(:number AS INTEGER)`);
  return {
    resendLeads: (some, now, { lowest, consumer } = {}) =>
      plainCommits.write(() => {
        const studio = studios.inWrite(some.studioId);
        if (studio === undefined) return { leads: 0, skipped: 0, next: null };
        const { rows, next } = selectToResend(studio, some);
        const kind = consumer === undefined ? 'resent' : resentTo(consumer);
        for (const row of rows) {
          const mark = markValues(marked(markOf(row), kind, now, lowest));
          const { changes } = resend.run({ ...mark, number: row[NUMBERED_LEAD.at.number] as string });
          assert(changes === 1, 'one_row_by_number');
        }
        return { leads: rows.length, skipped: 0, next };
      }),
  };
}

function leadChangeOf(row: ListRow): Checked<LeadChange> {
  const studioId = row[CHANGE.at.studioId] as string;
  const { revision, since, kinds } = markOf(row);
  const lead = isErased(row) ? erasedLeadOf(studioId, row) : (enquiredLeadOf(studioId, row) as Checked<Lead>);
  return checkedLeadChange(lead, { revision, since, kinds, attempts: row[CHANGE.at.attempts] as number });
}

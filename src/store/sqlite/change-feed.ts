import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../../common/invariants.ts';
import { ofEachConsumer } from '../../domain/consumer.ts';
import type { Lead } from '../../domain/lead.ts';
import {
  DEFERRED,
  DISTRIBUTED,
  firstChangeOf,
  type LeadChange,
  marked,
  resentTo,
  settledOf,
} from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import type { LeadChangeStore, ReportUnreadable, SomeLeads } from '../store.ts';
import type { Connection } from './connection.ts';
import type { Distribution } from './distribution.ts';
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

/** Where leads are queued, by the time of a change. @typeparam the columns are SQL */
interface Source {
  readonly from: string;
  readonly where: string;
  readonly since: string;
  readonly kinds: string;
  /** The number of the lead. */
  readonly lead: string;
  /** What the queue is ordered by. */
  readonly due: string;
  readonly attempts: string;
}

const MARKED: Source = {
  from: 'leads',
  where: 'changed_since IS NOT NULL',
  since: 'changed_since',
  kinds: MARKED_LEAD.sqlOf.kinds,
  lead: 'leads.number',
  due: 'changed_since',
  attempts: '0',
};

/** They wait for the unnamed consumer while there are named ones. */
const ALREADY_DISTRIBUTED: Source = { ...MARKED, where: `changed_since >= ${DISTRIBUTED}` };

/** A lead with an undistributed change is not among them: its delivery has the kinds of an older state. */
const DELIVERED: Source = {
  from: 'deliveries JOIN leads ON leads.number = deliveries.lead',
  where: `deliveries.consumer = ? AND due < ${DEFERRED} AND ifnull(changed_since, ${DISTRIBUTED}) >= ${DISTRIBUTED}`,
  since: 'deliveries.since',
  kinds: 'deliveries.kinds',
  lead: 'deliveries.lead',
  due: 'due',
  attempts: 'attempts',
};

/** Reads leads in the order of a queue. */
type ReadQueue = (limit: number) => Promise<LeadChange[]>;

/** When a lead is due, and the lead's number; integers in text. */
type Position = readonly [due: string, number: string];

/** Returns a function that reads the changes of a queue, as `firstReadable` does. */
function changesIn({ database, report }: Pick<Connection, 'database' | 'report'>, source: Source) {
  const change = columns({
    ...NUMBERED_LEAD.sqlOf,
    since: number(source.since),
    kinds: source.kinds,
    attempts: source.attempts,
    position: `CAST(${source.due} AS TEXT)`,
    studioId: 'studio_id',
  });
  const select = (condition: string) =>
    prepareLists(
      database,
      `SELECT ${change.sql} FROM ${source.from} LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE ${source.where} ${condition} ORDER BY ${source.due}, ${source.lead} LIMIT ? + 0`,
    );
  const selectFirst = select('');
  const selectBehind = select(`AND (${source.due}, ${source.lead}) > (CAST(? AS INTEGER), CAST(? AS INTEGER))`);
  return (parameters: readonly number[], reportUnreadable: ReportUnreadable = report): ReadQueue =>
    firstReadable<ListRow, LeadChange, Position>({
      first: (limit) => selectFirst.all(...parameters, limit),
      async behind(position, limit) {
        // Of many unreadable leads, only some are read at a time.
        await nextTurn();
        return position === null
          ? selectFirst.all(...parameters, limit)
          : selectBehind.all(...parameters, ...position, limit);
      },
      positionOf: (row) => [row[change.at.position], row[change.at.number]] as [string, string],
      check: (row) => {
        const attempts = row[change.at.attempts] as number;
        return readableOrNull(leadChangeOf(row[change.at.studioId] as string, row, attempts), reportUnreadable);
      },
    });
}

/** Returns a function that reads the deliveries of a consumer. */
export function deliveriesIn(connection: Connection): (consumer: number) => ReadQueue {
  const deliveries = changesIn(connection, DELIVERED);
  return ofEachConsumer((consumer) => deliveries([consumer]));
}

/** The change feed of the unnamed consumer, in SQLite: a lead's mark is a part of its row. */
export function sqliteLeadChanges(
  connection: Connection,
  { distribute, distributeInWrite }: Distribution,
): LeadChangeStore {
  const { database, plainCommits, studios } = connection;
  const acknowledge = database.prepare(`
    UPDATE leads SET changed_since = NULL, change_kinds = NULL
    WHERE studio_number = ? AND id = unhex(?, '-') AND revision = ? AND changed_since IS NOT NULL`);
  const selectWaiting = database.prepare(`
    SELECT CASE WHEN changed_since IS NOT NULL THEN revision END AS waiting FROM leads
    WHERE studio_number = ? AND id = unhex(?, '-')`);
  const selectToResend = leadsToSend(database);
  const resend = database.prepare(`UPDATE leads SET ${SET_MARK} WHERE number = CAST(:number AS INTEGER)`);
  const count = prepareLists(
    database,
    'SELECT count(*) FROM (SELECT 1 FROM leads WHERE changed_since IS NOT NULL LIMIT ? + 0)',
  );
  const marks = changesIn(connection, MARKED);
  const distributed = changesIn(connection, ALREADY_DISTRIBUTED);
  const [readMarked, readDistributed] = [marks([]), distributed([])];
  const readOldest = [marks, distributed].map((read) => read([], () => {}));

  return {
    async listLeadChanges(limit) {
      // What is distributed may all be of test studios.
      for (;;) {
        const { isNeeded, isComplete } = await distribute();
        const found = await (isNeeded ? readDistributed : readMarked)(limit);
        if (found.length > 0 || isComplete) return found;
      }
    },

    acknowledgeLeadChanges: (acknowledgements) =>
      plainCommits.write(() => {
        distributeInWrite(acknowledgements);
        let leads = 0;
        for (const { studioId, leadId, revision } of acknowledgements) {
          const studio = studios.inWrite(studioId);
          if (studio !== undefined) leads += Number(acknowledge.run(studio, leadId, revision).changes);
        }
        return settledOf(leads, acknowledgements, ({ studioId, leadId }) => {
          const studio = studios.inWrite(studioId);
          return studio === undefined ? undefined : (selectWaiting.get(studio, leadId)?.waiting as number | null);
        });
      }),

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

    async measureLeadChanges(bound) {
      const first = (await Promise.all(readOldest.map((read) => read(1)))).flat().map(({ since }) => since.getTime());
      return {
        leads: count.get(bound)?.[0] as number,
        since: first.length > 0 ? new Date(Math.min(...first)) : null,
      };
    },
  };
}

function leadChangeOf(studioId: string, row: ListRow, attempts: number): Checked<LeadChange> {
  const { revision, since: mark, kinds } = markOf(row);
  const lead = isErased(row) ? erasedLeadOf(studioId, row) : (enquiredLeadOf(studioId, row) as Checked<Lead>);
  const since = mark && firstChangeOf(mark);
  // 0: written by release 1.0, which stored no time.
  return checkedLeadChange(lead, { revision, since: since?.getTime() === 0 ? undefined : since, kinds, attempts });
}

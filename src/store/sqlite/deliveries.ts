import { setImmediate as nextTurn } from 'node:timers/promises';
import { cachedByConsumer } from '../../domain/consumer.ts';
import type { Lead } from '../../domain/lead.ts';
import {
  type Acknowledgement,
  countStates,
  DEFERRED,
  type LeadChange,
  SET_ASIDE,
  type StateCounts,
  toDueTime,
  toRetryTime,
  waitingBefore,
} from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import type { DeliveryStore } from '../port/deliveries.ts';
import type { Connection } from './connection.ts';
import type { Distribution } from './distribution.ts';
import {
  columns,
  enquiredLeadFromRow,
  erasedLeadFromRow,
  idText,
  isErased,
  LEAD_WITH_PENDING,
  type ListRow,
  number,
  ofStudio,
  pendingFromRow,
} from './rows.ts';

/** The maximum number of deferred deliveries that are requeued at a time. */
const MAX_RETURNED = 100;

const CHANGE = columns({
  ...LEAD_WITH_PENDING.sqlByName,
  since: number('deliveries.since'),
  kinds: 'deliveries.kinds',
  attempts: 'attempts',
  position: 'CAST(due AS TEXT)',
  studioId: 'studio_id',
});

/** A delivery's due time, and the lead's number; integers as text. */
type Position = readonly [due: string, number: string];

export function sqliteDeliveries(connection: Connection, { distribute, distributeSome }: Distribution): DeliveryStore {
  const readDeliveries = deliveryReader(connection);
  const count = connection.prepare<[leads: number, due: number | null, since: number]>(`
    SELECT count(*), min(due), since FROM (
      SELECT due, since FROM deliveries WHERE consumer = ? AND due >= ? AND due < ? ORDER BY due LIMIT ? + 0)`);
  return {
    distributeLeadChanges: distributeSome,

    async listDeliveries(number, limit) {
      const { consumers, isComplete } = await distribute();
      const consumer = consumers.find((each) => each.number === number);
      return consumer ? { consumer, changes: await readDeliveries(number)(limit), isComplete } : null;
    },

    async measureDeliveries(number, bound) {
      const { isComplete } = await distribute();
      const [leads = 0, due = null, since = 0] = count.get(number, 0, SET_ASIDE, bound) ?? [];
      const [setAside = 0, first = null] = count.get(number, SET_ASIDE, Number.MAX_SAFE_INTEGER, bound) ?? [];
      return {
        waiting: { leads, since: due === null || due >= DEFERRED ? null : new Date(since) },
        setAside: { leads: setAside, since: first === null ? null : new Date(first - SET_ASIDE) },
        isComplete,
      };
    },

    ...deliveryChanges(connection),
  };
}

function deliveryReader({
  prepare,
  report,
}: Connection): (consumer: number) => (limit: number) => Promise<LeadChange[]> {
  // Skips leads with an undistributed change, because their deliveries have the kinds of an older state.
  const select = (condition: string) =>
    prepare(`
      SELECT ${CHANGE.sql}
      FROM deliveries JOIN leads ON leads.number = deliveries.lead
        LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE deliveries.consumer = ? AND due < ${DEFERRED} AND changed_since IS NULL ${condition}
      ORDER BY due, deliveries.lead LIMIT ? + 0`);
  const selectFirst = select('');
  const selectBehind = select('AND (due, deliveries.lead) > (CAST(? AS INTEGER), CAST(? AS INTEGER))');
  return cachedByConsumer((consumer) =>
    firstReadable<ListRow, LeadChange, Position>({
      first: (limit) => selectFirst.all(consumer, limit),
      async behind(position, limit) {
        // Lets other calls run between two reads of unreadable leads.
        await nextTurn();
        return position === null ? selectFirst.all(consumer, limit) : selectBehind.all(consumer, ...position, limit);
      },
      toPosition: (row) => [row[CHANGE.at.position], row[CHANGE.at.number]] as [string, string],
      check: (row) => readableOrNull(leadChangeFromRow(row), report),
    }),
  );
}

function leadChangeFromRow(row: ListRow): Checked<LeadChange> {
  const studioId = row[CHANGE.at.studioId] as string;
  const lead = isErased(row) ? erasedLeadFromRow(studioId, row) : (enquiredLeadFromRow(studioId, row) as Checked<Lead>);
  return checkedLeadChange(lead, { ...pendingFromRow(row), attempts: row[CHANGE.at.attempts] as number });
}

/** Returns the methods that acknowledge deliveries, set them aside or requeue them. */
function deliveryChanges({ prepare, plainCommits }: Connection) {
  const LEAD = `FROM leads WHERE ${ofStudio(':studioId')} AND id = unhex(:leadId, '-')`;
  const OF_LEAD = `consumer = :consumer AND lead = (SELECT number ${LEAD})`;
  const acknowledge = prepare(`DELETE FROM deliveries WHERE ${OF_LEAD} AND revision <= :revision`);
  const setAside = prepare(`
    UPDATE deliveries SET due = :due, reason = :reason, attempts = attempts + 1
    WHERE ${OF_LEAD} AND revision <= :revision AND due < :before`);
  const takeBack = prepare(`UPDATE deliveries SET due = since WHERE ${OF_LEAD} AND due >= ${DEFERRED}`);
  const selectDeferred = `SELECT consumer, lead FROM deliveries
    WHERE consumer = ? AND due BETWEEN ${DEFERRED} AND ${DEFERRED} + ? LIMIT ${MAX_RETURNED}`;
  const hasDeferred = prepare(selectDeferred);
  const returnDeferred = prepare(`
    UPDATE deliveries SET due = since WHERE (consumer, lead) IN (${selectDeferred})`);
  const selectWaiting = prepare<[revision: number | null]>(`
    SELECT (SELECT revision FROM deliveries WHERE consumer = :consumer AND lead = leads.number) ${LEAD}`);
  const selectAside = prepare<[string, id: string, revision: number, reason: string, due: number, attempts: number]>(`
    SELECT studio_id, hex(id), deliveries.revision, reason, due, attempts
    FROM deliveries JOIN leads ON leads.number = lead JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE consumer = :consumer AND (due, lead) > (:due, coalesce((SELECT number ${LEAD}), 0))
    ORDER BY due, lead LIMIT :limit + 0`);

  /** Changes the deliveries of leads that a consumer names, and counts the results. Must be called within a write. */
  function applyTo<Named extends Acknowledgement>(
    consumer: number,
    leads: readonly Named[],
    change: (lead: Named) => { readonly changes: number | bigint },
  ): StateCounts {
    const applied = leads.reduce((sum, lead) => sum + Number(change(lead).changes), 0);
    return countStates(
      applied,
      leads,
      ({ studioId, leadId }) => selectWaiting.get({ consumer, studioId, leadId })?.[0],
    );
  }

  return {
    acknowledgeDeliveries: (consumer, acknowledgements) =>
      plainCommits.write(() =>
        applyTo(consumer, acknowledgements, ({ studioId, leadId, revision }) =>
          acknowledge.run({ consumer, studioId, leadId, revision }),
        ),
      ),

    setAsideDeliveries: (consumer, leads, now) =>
      plainCommits.write(() =>
        applyTo(consumer, leads, ({ studioId, leadId, revision, reason, retryAt }) => {
          const [due, before] = [toDueTime(retryAt, now).getTime(), waitingBefore(retryAt)];
          return setAside.run({ consumer, studioId, leadId, revision, reason, due, before });
        }),
      ),

    async returnDeferredDeliveries(number, now) {
      const parameters = [number, now.getTime()];
      if (hasDeferred.get(...parameters)) await plainCommits.write(() => returnDeferred.run(...parameters));
    },

    takeBackDeliveries: (consumer, leads) =>
      plainCommits.write(() =>
        leads.reduce(
          (sum, { studioId, leadId }) => sum + Number(takeBack.run({ consumer, studioId, leadId }).changes),
          0,
        ),
      ),

    async listDeliveriesSetAside(consumer, after, limit) {
      const { due, studioId, leadId } = after ?? { due: new Date(DEFERRED - 1), studioId: '', leadId: '' };
      const rows = selectAside.all({ consumer, due: due.getTime(), studioId, leadId, limit });
      return rows.map(([studioId, id, revision, reason, ms, attempts]) => {
        const due = new Date(ms);
        return { studioId, leadId: idText(id), revision, reason, attempts, due, retryAt: toRetryTime(due) };
      });
    },
  } satisfies Partial<DeliveryStore>;
}

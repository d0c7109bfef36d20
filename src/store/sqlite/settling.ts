import {
  type Acknowledgement,
  asideBefore,
  DEFERRED,
  dueOf,
  retryTimeOf,
  type Settled,
  settledOf,
} from '../../domain/lead-change.ts';
import type { DeliveryStore } from '../port/deliveries.ts';
import type { Connection } from './connection.ts';
import { idText } from './rows.ts';

/** The maximum number of deliveries that come again at a time. */
const MAX_RETURNED = 100;

/** What consumers make of their deliveries, in SQLite. */
export function settlingMethods({ database, plainCommits, studios }: Connection) {
  const OF_LEAD = "lead = (SELECT number FROM leads WHERE studio_number = :studio AND id = unhex(:leadId, '-'))";
  const acknowledge = database.prepare(`
    DELETE FROM deliveries WHERE consumer = :consumer AND revision <= :revision AND ${OF_LEAD}`);
  const setAside = database.prepare(`
    UPDATE deliveries SET due = :due, reason = :reason, attempts = attempts + 1
    WHERE consumer = :consumer AND revision <= :revision AND due < :before AND ${OF_LEAD}`);
  const takeBack = database.prepare(`
    UPDATE deliveries SET due = since WHERE consumer = :consumer AND due >= ${DEFERRED} AND ${OF_LEAD}`);
  const selectDeferred = `SELECT consumer, lead FROM deliveries
    WHERE consumer = ? AND due BETWEEN ${DEFERRED} AND ${DEFERRED} + ? LIMIT ${MAX_RETURNED}`;
  const hasDeferred = database.prepare(selectDeferred);
  const returnDeferred = database.prepare(`
    UPDATE deliveries SET due = since WHERE (consumer, lead) IN (${selectDeferred})`);
  const selectWaiting = database.prepare(`
    SELECT deliveries.revision AS waiting FROM leads LEFT JOIN deliveries ON lead = leads.number AND consumer = :consumer
    WHERE studio_number = :studio AND id = unhex(:leadId, '-')`);
  const selectAside = database.prepare(`
    SELECT studio_id, hex(id) AS id, deliveries.revision, reason, due, attempts
    FROM deliveries JOIN leads ON leads.number = lead JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE consumer = :consumer AND (due, lead) > (:due, coalesce(
      (SELECT number FROM leads WHERE id = unhex(:leadId, '-') AND studio_number =
        (SELECT number FROM studio_numbers WHERE studio_id = :studioId)), 0))
    ORDER BY due, lead LIMIT :limit + 0`);

  /** Changes the deliveries of leads that a consumer names, and says what became of them; within a write. */
  function settle<Named extends Acknowledgement>(
    consumer: number,
    leads: readonly Named[],
    change: (
      parameters: Pick<Acknowledgement, 'leadId' | 'revision'> & { readonly consumer: number; readonly studio: number },
      lead: Named,
    ) => { readonly changes: number | bigint },
  ): Settled {
    let settled = 0;
    for (const lead of leads) {
      const studio = studios.inWrite(lead.studioId);
      if (studio === undefined) continue;
      const { leadId, revision } = lead;
      settled += Number(change({ consumer, studio, leadId, revision }, lead).changes);
    }
    return settledOf(settled, leads, ({ studioId, leadId }) => {
      const studio = studios.inWrite(studioId);
      if (studio === undefined) return undefined;
      return selectWaiting.get({ consumer, studio, leadId })?.waiting as number | null | undefined;
    });
  }

  return {
    acknowledgeDeliveries: (consumer, acknowledgements) =>
      plainCommits.write(() =>
        settle(consumer, acknowledgements, ({ revision, ...lead }) => acknowledge.run({ ...lead, revision })),
      ),

    setAsideDeliveries: (consumer, leads, now) =>
      plainCommits.write(() =>
        settle(consumer, leads, (lead, aside) =>
          setAside.run({ ...lead, reason: aside.reason, due: dueOf(aside, now).getTime(), before: asideBefore(aside) }),
        ),
      ),

    async returnDeferredDeliveries(number, now) {
      const parameters = [number, now.getTime()];
      if (hasDeferred.get(...parameters)) await plainCommits.write(() => returnDeferred.run(...parameters));
    },

    takeBackDeliveries: (consumer, leads) =>
      plainCommits.write(() => {
        const named = leads.map((lead) => ({ ...lead, revision: 0 }));
        return settle(consumer, named, ({ revision: _, ...lead }) => takeBack.run(lead)).settled;
      }),

    async listDeliveriesSetAside(consumer, after, limit) {
      const { due, studioId, leadId } = after ?? { due: new Date(DEFERRED - 1), studioId: '', leadId: '' };
      const rows = selectAside.all({ consumer, due: due.getTime(), studioId, leadId, limit });
      return rows.map((row) => {
        const due = new Date(row.due as number);
        const [studioId, leadId] = [row.studio_id as string, idText(row.id as string)];
        const [revision, reason, attempts] = [row.revision as number, row.reason as string, row.attempts as number];
        return { studioId, leadId, revision, reason, attempts, due, retryAt: retryTimeOf(due) };
      });
    },
  } satisfies Partial<DeliveryStore>;
}

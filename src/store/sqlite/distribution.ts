import { MAX_DISTRIBUTION_MS } from '../../../common/deadlines.ts';
import { assert } from '../../../common/invariants.ts';
import { oneAtATime } from '../../../common/one-at-a-time.ts';
import { type Consumer, DEFAULT_CONSUMER, receivesStudio } from '../../domain/consumer.ts';
import { addChange, computeDelivery, isOnlyResent, resentTo } from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import type { ResendStore } from '../port/resending.ts';
import type { Connection } from './connection.ts';
import { storedConsumers } from './consumers.ts';
import {
  columns,
  kindsJson,
  LEAD_WITH_PENDING,
  type ListRow,
  lastIdOfFull,
  ofStudio,
  type Prepare,
  pendingFromRow,
  pendingValues,
  SET_PENDING,
  UUID_BYTES,
} from './rows.ts';

/** Resends leads, in SQLite. A lead's pending change is part of its row. */
export function sqliteResending({ prepare, plainCommits }: Connection): ResendStore {
  // An id that is not a UUID cannot end a page.
  const select = (rest: string) =>
    prepare(
      `SELECT ${LEAD_WITH_PENDING.sql} FROM leads WHERE ${ofStudio()} AND length(id) = ${UUID_BYTES} AND ${rest}`,
    );
  const selectPage = select("id > unhex(?, '-') ORDER BY id LIMIT ? + 0");
  const selectSome = select("id IN (SELECT unhex(value, '-') FROM json_each(?))");
  const resend = prepare(`UPDATE leads SET ${SET_PENDING} WHERE number = CAST(:number AS INTEGER)`);
  return {
    resendLeads: ({ studioId, updated, ...some }, now, { lowest, consumer } = {}) =>
      plainCommits.write(() => {
        const rows =
          'leadIds' in some
            ? selectSome.all(studioId, JSON.stringify(some.leadIds))
            : selectPage.all(studioId, some.after ?? '', some.limit);
        const next = 'leadIds' in some ? null : lastIdOfFull(rows, some.limit);
        const { at } = LEAD_WITH_PENDING;
        const resent = rows.filter((row) => isIn(new Date(row[at.updatedAt] as number), updated));
        const kind = consumer === undefined ? 'resent' : resentTo(consumer);
        for (const row of resent) {
          const pending = pendingValues(addChange(pendingFromRow(row), kind, now, lowest));
          const { changes } = resend.run({ ...pending, number: row[at.number] as string });
          assert(changes === 1, 'one_row_by_number');
        }
        return { leads: resent.length, skipped: 0, next };
      }),
  };
}

/** The maximum number of pending changes that a transaction distributes. */
const MAX_CHANGES = 500;

const PENDING = columns({
  ...LEAD_WITH_PENDING.sqlByName,
  studioId: 'studio_id',
  isTest: 'EXISTS (SELECT 1 FROM studios WHERE studios.id = studio_numbers.studio_id AND is_test = 1)',
});

/** Returns a function that turns pending changes into deliveries, and acknowledges them. Must be called within a write. */
function rowDistributor(prepare: Prepare) {
  const deliver = prepare(`
    INSERT INTO deliveries (consumer, lead, revision, since, due, kinds)
      VALUES (:consumer, CAST(:lead AS INTEGER), :revision, :since, :since, :kinds)
      ON CONFLICT (consumer, lead) DO UPDATE SET
        revision = excluded.revision, since = min(since, excluded.since),
        kinds = iif(json_valid(kinds), json_patch(kinds, excluded.kinds), excluded.kinds),
        due = iif(:keepsAside, due, min(due, excluded.due)), attempts = iif(:keepsAside, attempts, 0),
        reason = iif(:keepsAside, reason, NULL)
        WHERE revision < excluded.revision`);
  const acknowledge = prepare(
    'UPDATE leads SET changed_since = NULL, change_kinds = NULL WHERE number = CAST(? AS INTEGER)',
  );
  const { at } = PENDING;
  return (rows: readonly ListRow[], receivers: readonly Consumer[]): void => {
    for (const row of rows) {
      const lead = row[at.number] as string;
      const [pending, createdAt] = [pendingFromRow(row), new Date(row[at.createdAt] as number)];
      const studio = { id: row[at.studioId] as string, isTest: row[at.isTest] === 1 };
      for (const receiver of receivers) {
        const { number: consumer } = receiver;
        const delivery = receivesStudio(receiver, studio) && computeDelivery(pending, createdAt, consumer);
        if (!delivery) continue;
        const [since, kinds] = [delivery.since.getTime(), kindsJson(delivery.kinds)];
        const keepsAside = Number(isOnlyResent(delivery.kinds));
        deliver.run({ consumer, lead, revision: delivery.revision, since, kinds, keepsAside });
      }
      const { changes } = acknowledge.run(lead);
      assert(changes === 1, 'one_row_by_number');
    }
  };
}

export type Distribution = ReturnType<typeof distribution>;

/** Distributes changed leads to consumers, in SQLite. */
export function distribution(connection: Connection) {
  const { prepare, plainCommits } = connection;
  const hasPending = prepare('SELECT 1 FROM leads WHERE changed_since IS NOT NULL LIMIT 1');
  const selectFirst = prepare(`
    SELECT ${PENDING.sql} FROM leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE changed_since IS NOT NULL ORDER BY changed_since, leads.number LIMIT ${MAX_CHANGES}`);
  const distributeRows = rowDistributor(prepare);
  const stored = storedConsumers(connection);
  const consumers = (): Consumer[] => [DEFAULT_CONSUMER, ...stored()];

  /** Distributes some pending changes; returns whether none was left. */
  const distributeSome = (): Promise<boolean> =>
    plainCommits.write(() => {
      const rows = selectFirst.all();
      distributeRows(rows, consumers());
      return rows.length < MAX_CHANGES;
    });

  /** Concurrent callers share a part. Otherwise each would add a part to one commit, which would block the process. */
  const distributePart = oneAtATime(distributeSome);

  return {
    distributeSome,

    /** Distributes pending changes; returns the consumers, and whether none is left. */
    async distribute() {
      const until = performance.now() + MAX_DISTRIBUTION_MS;
      const isComplete = () => hasPending.get() === undefined;
      for (let isLate = false; !isLate && !isComplete(); isLate = performance.now() >= until) await distributePart();
      return { consumers: consumers(), isComplete: isComplete() };
    },
  };
}

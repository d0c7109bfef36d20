import type { DatabaseSync } from 'node:sqlite';
import { MAX_DISTRIBUTION_MS } from '../../../common/deadlines.ts';
import { assert } from '../../../common/invariants.ts';
import { oneAtATime } from '../../../common/one-at-a-time.ts';
import { type Consumer, DEFAULT_CONSUMER, isOfConsumer } from '../../domain/consumer.ts';
import { type Delivery, deliveryOf, isOnlyResent } from '../../domain/lead-change.ts';
import { checkedConsumer } from '../records.ts';
import type { Connection } from './connection.ts';
import { CONSUMERS } from './record-rows.ts';
import { columns, kindsJson, LEAD_COLUMNS, type ListRow, markOf, NUMBERED_LEAD, prepareLists } from './rows.ts';

/** The maximum number of marks that a transaction distributes. */
const MAX_MARKS = 500;

const MARK = columns({
  ...NUMBERED_LEAD.sqlOf,
  studioId: 'studio_id',
  isTest: 'EXISTS (SELECT 1 FROM studios WHERE studios.id = studio_numbers.studio_id AND is_test = 1)',
});

const DELIVER = `
  INSERT INTO deliveries (consumer, lead, revision, since, due, kinds)
    VALUES (:consumer, CAST(:lead AS INTEGER), :revision, :since, :since, :kinds)
    ON CONFLICT (consumer, lead) DO UPDATE SET
      revision = excluded.revision, since = min(since, excluded.since),
      kinds = iif(json_valid(kinds), json_patch(kinds, excluded.kinds), excluded.kinds),
      due = iif(:keepsAside, due, min(due, excluded.due)), attempts = iif(:keepsAside, attempts, 0),
      reason = iif(:keepsAside, reason, NULL)
      WHERE revision < excluded.revision`;

/** Returns a function that makes the deliveries of marks, and acknowledges these; within a write. */
function rowDistributor(database: DatabaseSync) {
  const insert = database.prepare(DELIVER);
  const acknowledge = database.prepare(
    'UPDATE leads SET changed_since = NULL, change_kinds = NULL WHERE number = CAST(? AS INTEGER)',
  );

  /** @param lead the number of the lead */
  function deliver(consumer: number, lead: string, { revision, since, kinds }: Delivery): void {
    const isAside = Number(isOnlyResent({ kinds }));
    insert.run({ consumer, lead, revision, since: since.getTime(), kinds: kindsJson(kinds), keepsAside: isAside });
  }

  return (rows: readonly ListRow[], to: readonly Consumer[]): void => {
    for (const row of rows) {
      const lead = row[MARK.at.number] as string;
      const [mark, createdAt] = [markOf(row), new Date(row[LEAD_COLUMNS.at.createdAt] as number)];
      const which = { id: row[MARK.at.studioId] as string, isTest: row[MARK.at.isTest] === 1 };
      for (const consumer of to) {
        const delivery = isOfConsumer(consumer, which) && deliveryOf(mark, createdAt, consumer.number);
        if (delivery) deliver(consumer.number, lead, delivery);
      }
      const { changes } = acknowledge.run(lead);
      assert(changes === 1, 'one_row_by_number');
    }
  };
}

export type Distribution = ReturnType<typeof distribution>;

/** Makes deliveries for consumers of leads that are marked, in SQLite. */
export function distribution({ database, plainCommits, report }: Connection) {
  const selectConsumers = CONSUMERS.query(database, 'ORDER BY number');
  const hasMarks = database.prepare('SELECT 1 FROM leads WHERE changed_since IS NOT NULL LIMIT 1');
  const selectFirst = prepareLists(
    database,
    `SELECT ${MARK.sql} FROM leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number
    WHERE changed_since IS NOT NULL ORDER BY changed_since, leads.number LIMIT ${MAX_MARKS}`,
  );
  const distributeRows = rowDistributor(database);

  const stored = (): Consumer[] => selectConsumers.all().map((read) => checkedConsumer(read, report));
  const consumers = (): Consumer[] => [DEFAULT_CONSUMER, ...stored()];

  /** Distributes a part of what is marked; returns whether none was left. */
  const distributeSome = (): Promise<boolean> =>
    plainCommits.write(() => {
      const rows = selectFirst.all();
      distributeRows(rows, consumers());
      return rows.length < MAX_MARKS;
    });

  /** For all who ask meanwhile: of many, each would add its part to one commit, during which the process does nothing else. */
  const distributePart = oneAtATime(distributeSome);

  return {
    stored,
    distributeSome,

    /** Distributes what is marked; returns the consumers, and whether none is left. */
    async distribute() {
      const until = performance.now() + MAX_DISTRIBUTION_MS;
      const isComplete = () => hasMarks.get() === undefined;
      for (let isLate = false; !isLate && !isComplete(); isLate = performance.now() >= until) await distributePart();
      return { consumers: consumers(), isComplete: isComplete() };
    },
  };
}

import type { Filter, UpdateFilter } from 'mongodb';
import { MAX_DISTRIBUTION_MS, STORE_CALL_MS } from '../../../common/deadlines.ts';
import { oneAtATime } from '../../../common/one-at-a-time.ts';
import { type Consumer, DEFAULT_CONSUMER, receivesStudio } from '../../domain/consumer.ts';
import { computeDelivery, type Delivery, HANDLED, isOnlyResent } from '../../domain/lead-change.ts';
import { type ChangePosition, changedByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import { consumersIn } from './consumers.ts';
import type { DeliveryDocument } from './documents.ts';
import { ACKNOWLEDGED, type LeadDocument, pendingFromDocument } from './lead-documents.ts';
import { unchangedSince } from './pending-changes.ts';
import { among, deliveryKey, ID_ONLY, type LeadKey, READ } from './queries.ts';
import { DUPLICATE } from './server-refusal.ts';
import { insertEach, updateEach } from './write-each.ts';

/** The maximum number of pending changes read at a time. */
const MAX_CHANGES = 500;

/** A condition for the due time of acknowledged deliveries. */
const IS_HANDLED = { $gte: new Date(HANDLED) } as const;

/** The maximum number of deliveries that a command inserts. */
const MAX_DELIVERIES = 500;

function deliveryWriter({ deliveries }: Connection) {
  return deliver;

  /**
   * Writes deliveries, and returns which of them are certainly stored with at least their revision. A stored delivery
   * with a lower revision is raised, or is replaced if it was acknowledged.
   */
  async function deliver(
    documents: readonly DeliveryDocument[],
  ): Promise<{ has(delivery: DeliveryDocument): boolean }> {
    const stored = new Set<string>();
    for (let index = 0; index < documents.length; index += MAX_DELIVERIES) {
      const part = documents.slice(index, index + MAX_DELIVERIES);
      // The lead of a refused delivery already has a delivery.
      const refusals = await insertEach(deliveries, part, [DUPLICATE]);
      const refused = new Set(refusals.map(({ index }) => part[index] as DeliveryDocument));
      for (const document of part) if (!refused.has(document)) stored.add(deliveryText(document._id));
      if (refused.size > 0) for (const key of await raise([...refused])) stored.add(key);
    }
    return { has: ({ _id }) => stored.has(deliveryText(_id)) };
  }

  async function raise(documents: readonly DeliveryDocument[]): Promise<string[]> {
    const updates = documents.flatMap((document) => {
      const { revision, kinds, since, due } = document;
      const times = Object.entries(kinds).map(([kind, time]) => [`kinds.${kind}`, time]);
      const update = {
        $set: { revision, ...Object.fromEntries(times) },
        ...(isOnlyResent(document.kinds) ? { $min: { since } } : { $min: { since, due }, $unset: SET_ASIDE_FIELDS }),
      } as UpdateFilter<DeliveryDocument>;
      const filter = { ...lowerThan(document), due: { $not: IS_HANDLED } };
      return [{ updateOne: { filter, update } }, createReplacement(document, { due: IS_HANDLED })];
    });
    const { refused } = await updateEach(deliveries, updates);
    // Refused updates: the stored kinds are unreadable, so the whole delivery is replaced.
    const unreadable = [...refused].map((index) => documents[Math.floor(index / 2)] as DeliveryDocument);
    await updateEach(
      deliveries,
      unreadable.map((document) => createReplacement(document)),
    );
    const which = among(documents.map(({ _id }) => _id));
    const found = await deliveries.find(which, { ...READ, projection: { revision: 1 } }).toArray();
    const revisions = new Map(found.map(({ _id, revision }) => [deliveryText(_id), revision]));
    return documents.flatMap(({ _id, revision }) => {
      const key = deliveryText(_id);
      return (revisions.get(key) ?? -1) >= revision ? key : [];
    });
  }
}

/** The fields of a delivery that was set aside. */
const SET_ASIDE_FIELDS = { attempts: 1, reason: 1 } as const;

const lowerThan = ({ _id, studioId, revision }: DeliveryDocument) => ({ _id, studioId, revision: { $lt: revision } });

const createReplacement = (document: DeliveryDocument, condition: Filter<DeliveryDocument> = {}) => {
  const { _id, studioId, ...delivery } = document;
  const update = { $set: delivery, $unset: SET_ASIDE_FIELDS };
  return { updateOne: { filter: { ...lowerThan(document), ...condition }, update } };
};

export type Distribution = ReturnType<typeof distribution>;

/** Distributes changed leads to consumers, in MongoDB. Must be called within a call. */
export function distribution(connection: Connection) {
  const { leads, studios, report } = connection;
  const pendingChanges = changedByTime(connection);
  const deliver = deliveryWriter(connection);

  const consumers = async (): Promise<readonly Consumer[]> => [
    DEFAULT_CONSUMER,
    ...(await consumersIn(connection, report)),
  ];

  /** Distributes pending changes that were read before the consumers. */
  async function distributeChanges(found: readonly LeadDocument[], receivers: readonly Consumer[]): Promise<void> {
    if (found.length === 0) return;
    const $in = [...new Set(found.map(({ studioId }) => studioId))];
    const tests = await studios.find({ _id: { $in }, isTest: true }, ID_ONLY).toArray();
    const testIds = new Set(tests.map(({ _id }) => _id));
    const toDeliver = found.map((lead) => {
      const [pending, createdAt] = [pendingFromDocument(lead), timeOrNone(lead.createdAt)];
      const studio = { id: lead.studioId, isTest: testIds.has(lead.studioId) };
      const documents = receivers.flatMap((consumer) => {
        const delivery = receivesStudio(consumer, studio) && computeDelivery(pending, createdAt, consumer.number);
        return delivery ? deliveryDocument(consumer.number, lead._id, delivery) : [];
      });
      return { lead, documents };
    });
    const delivered = await deliver(toDeliver.flatMap(({ documents }) => documents));
    const acknowledged = toDeliver.filter(({ documents }) => documents.every(delivered.has));
    // A lead whose update the database refuses stays pending, although its deliveries exist.
    await updateEach(
      leads,
      acknowledged.map(({ lead }) => ({ updateOne: createAcknowledgement(lead) })),
    );
  }

  async function distribute() {
    const until = performance.now() + MAX_DISTRIBUTION_MS;
    let receivers: readonly Consumer[] = [];
    let position: ChangePosition | null = null;
    let isComplete = false;
    for (let isLate = false; !isLate && !isComplete; isLate = performance.now() >= until) {
      const found: LeadDocument[] = await (position
        ? pendingChanges.behind(position, MAX_CHANGES)
        : pendingChanges.first(MAX_CHANGES));
      receivers = await consumers();
      await distributeChanges(found, receivers);
      const last = found.at(-1);
      isComplete = found.length < MAX_CHANGES || !last;
      position = (last && pendingChanges.toPosition(last)) ?? null;
    }
    return { consumers: receivers, isComplete };
  }

  return {
    /**
     * Distributes pending changes; returns the consumers, and whether no change is left. Concurrent callers share a run,
     * because each would otherwise read and write the same.
     */
    distribute: oneAtATime(distribute, STORE_CALL_MS),

    async distributeSome(): Promise<boolean> {
      const found = await pendingChanges.first(MAX_CHANGES);
      await distributeChanges(found, await consumers());
      return found.length < MAX_CHANGES;
    },
  };
}

/** Returns an update that acknowledges a delivered change if it is still as read. Other invalid parts of the change stay. */
function createAcknowledgement({ _id, studioId, changes }: LeadDocument) {
  // An array is no pending change, and is removed. The lead is sent again with its next change.
  const { filter, update } = Array.isArray(changes)
    ? { filter: { changes: { $size: changes.length } }, update: { $unset: { changes: 1 } } }
    : {
        filter: { 'changes.since': changes.since, ...unchangedSince(changes) },
        update: { $set: { 'changes.since': ACKNOWLEDGED }, $unset: { 'changes.kinds': 1 } },
      };
  return {
    filter: { studioId, _id, ...filter } as Filter<LeadDocument>,
    update: update as UpdateFilter<LeadDocument>,
  };
}

const timeOrNone = (time: unknown): Date => (time instanceof Date ? time : new Date(Number.NaN));

export const deliveryDocument = (consumer: number, lead: LeadKey, delivery: Delivery): DeliveryDocument => ({
  _id: deliveryKey(consumer, lead),
  consumer,
  studioId: lead.studioId,
  due: delivery.since,
  ...delivery,
});

const deliveryText = ({ consumer, studioId, id }: DeliveryDocument['_id']): string => `${consumer} ${studioId} ${id}`;

import { type Filter, MongoBulkWriteError, type UpdateFilter } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { type Consumer, isOfConsumer } from '../../domain/consumer.ts';
import {
  type Acknowledgement,
  type Delivery,
  DISTRIBUTED,
  deliveryOf,
  distributedSince,
} from '../../domain/lead-change.ts';
import { MAX_DISTRIBUTION_MS } from '../decisions.ts';
import { type ChangePosition, undistributedByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import {
  type DeliveryDocument,
  deliveryKey,
  type LeadDocument,
  type LeadKey,
  leadKey,
  READ,
  studiosOf,
} from './documents.ts';
import { MARK, markOf, refusalsIn, unmarkedSince } from './marks.ts';
import { DUPLICATE } from './server-refusal.ts';

/** The maximum number of marks that are read at a time. */
const MAX_MARKS = 500;

/** The maximum number of deliveries of a command. */
const MAX_DELIVERIES = 1000;

/** Returns a function that writes deliveries. */
function deliveryWriter({ deliveries }: Pick<Connection, 'deliveries'>) {
  return deliver;

  /**
   * Writes deliveries, and returns which of them are certainly stored with at least their revision. One of a lower
   * revision is raised. One that its consumer acknowledged meanwhile is gone: the lead stays marked, and comes again.
   */
  async function deliver(
    documents: readonly DeliveryDocument[],
  ): Promise<{ has(delivery: DeliveryDocument): boolean }> {
    const stored = new Set<string>();
    for (let index = 0; index < documents.length; index += MAX_DELIVERIES) {
      const part = documents.slice(index, index + MAX_DELIVERIES);
      const refused = await insert(part);
      for (const document of part) if (!refused.has(document)) stored.add(textOf(document._id));
      if (refused.size > 0) for (const key of await raise([...refused])) stored.add(key);
    }
    return { has: ({ _id }) => stored.has(textOf(_id)) };
  }

  /** Returns the deliveries of leads that have one already. */
  async function insert(documents: readonly DeliveryDocument[]): Promise<ReadonlySet<DeliveryDocument>> {
    try {
      await deliveries.insertMany(documents, { ordered: false, maxTimeMS: STORE_SILENCE_MS });
      return new Set();
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError()) throw error;
      const refusals = [error.writeErrors].flat();
      const isKnown = error.insertedCount + refusals.length === documents.length;
      if (!isKnown || refusals.some(({ code }) => code !== DUPLICATE)) throw error;
      return new Set(refusals.map(({ index }) => documents[index] as DeliveryDocument));
    }
  }

  async function raise(documents: readonly DeliveryDocument[]): Promise<string[]> {
    const updates = documents.map(({ _id, studioId, revision, kinds }) => {
      const times = Object.entries(kinds).map(([kind, time]) => [`kinds.${kind}`, time]);
      const update = { $set: { revision, ...Object.fromEntries(times) } } as UpdateFilter<DeliveryDocument>;
      return { updateOne: { filter: { _id, studioId, revision: { $lt: revision } }, update } };
    });
    await deliveries.bulkWrite(updates, { ordered: false, maxTimeMS: STORE_SILENCE_MS });
    const found = await deliveries.find(among(documents), { ...READ, projection: { revision: 1 } }).toArray();
    const revisions = new Map(found.map(({ _id, revision }) => [textOf(_id), revision]));
    return documents.flatMap(({ _id, revision }) => {
      const key = textOf(_id);
      return (revisions.get(key) ?? -1) >= revision ? key : [];
    });
  }
}

export type Distribution = ReturnType<typeof distribution>;

/** Makes deliveries for named consumers of leads that are marked, in MongoDB; within a call. */
export function distribution(connection: Connection) {
  const { leads, feed } = connection;
  const undistributed = undistributedByTime(connection);
  const deliver = deliveryWriter(connection);

  const consumers = async (): Promise<readonly Consumer[]> =>
    (await feed.findOne({ _id: 'consumers' }, READ))?.list ?? [];

  /** Distributes marks that were read before the consumers. */
  async function distributeMarks(found: readonly LeadDocument[], to: readonly Consumer[]): Promise<void> {
    if (found.length === 0) return;
    const each = found.map((lead) => {
      const delivery = deliveryOf(markOf(lead), timeOrNone(lead.createdAt));
      const own = to.filter((consumer) => isOfConsumer(consumer, lead.studioId));
      return { lead, delivery, documents: own.map(({ number }) => deliveryDocument(number, lead._id, delivery)) };
    });
    const stored = await deliver(each.flatMap(({ documents }) => documents));
    const moves = each
      .filter(({ documents }) => documents.every(stored.has))
      .map(({ lead, delivery }) => ({ updateOne: moveOf(lead, delivery) }));
    // One that the database refuses stays marked: its deliveries are there.
    if (moves.length > 0) await leads.bulkWrite(moves, { ordered: false }).catch(refusalsIn);
  }

  return {
    consumers,
    deliver,

    /** Distributes what is marked, if there are named consumers, and returns these. */
    async distribute(): Promise<readonly Consumer[]> {
      const until = performance.now() + MAX_DISTRIBUTION_MS;
      let to = await consumers();
      let position: ChangePosition | null = null;
      while (to.length > 0 && performance.now() < until) {
        const found: LeadDocument[] = await (position
          ? undistributed.behind(position, MAX_MARKS)
          : undistributed.first(MAX_MARKS));
        to = await consumers();
        if (to.length > 0) await distributeMarks(found, to);
        const last = found.at(-1);
        if (found.length < MAX_MARKS || !last) break;
        position = undistributed.positionOf(last) ?? null;
      }
      return to;
    },

    async distributeSome(): Promise<boolean> {
      const found = await undistributed.first(MAX_MARKS);
      await distributeMarks(found, await consumers());
      return found.length < MAX_MARKS;
    },

    /** Distributes leads that are about to be acknowledged; returns whether there are named consumers. */
    async distributeLeads(acknowledgements: readonly Acknowledgement[]): Promise<boolean> {
      if ((await consumers()).length === 0) return false;
      const filter = {
        studioId: studiosOf(acknowledgements),
        _id: { $in: acknowledgements.map(({ studioId, leadId }) => leadKey(studioId, leadId)) },
        'changes.since': { $lt: new Date(DISTRIBUTED) },
      } as Filter<LeadDocument>;
      const found = await leads.find(filter, MARK).toArray();
      await distributeMarks(found, await consumers());
      return true;
    },
  };
}

/** An update that makes a mark distributed, if it is still as it was read. What else is invalid in it stays. */
function moveOf({ _id, studioId, changes }: LeadDocument, { since }: Delivery) {
  // One that is no mark at all, and yet has a time, goes: the lead is sent with its next change.
  const { filter, update } = Array.isArray(changes)
    ? { filter: { changes: { $size: changes.length } }, update: { $unset: { changes: 1 } } }
    : {
        filter: { 'changes.since': changes.since, ...unmarkedSince({ changes }) },
        update: { $set: { 'changes.since': distributedSince(since) } },
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
  ...delivery,
});

/** A condition for some deliveries. */
const among = (documents: readonly Pick<DeliveryDocument, '_id' | 'studioId'>[]): Filter<DeliveryDocument> => ({
  _id: { $in: documents.map(({ _id }) => _id) },
  studioId: studiosOf(documents),
});

const textOf = ({ consumer, studioId, id }: DeliveryDocument['_id']): string => `${consumer} ${studioId} ${id}`;

import type { Collection, Document, Filter, FindOptions } from 'mongodb';
import { DEFERRED } from '../../domain/lead-change.ts';
import type { Collections } from './collections.ts';
import type { DeliveryDocument } from './documents.ts';
import { ACKNOWLEDGED, type LeadDocument } from './lead-documents.ts';
import { PENDING } from './pending-changes.ts';
import { READ } from './queries.ts';

/** The first step that raises the ceiling; each further one is twice as long; milliseconds. */
const FIRST_STEP_MS = 1000;

/** The maximum number of documents below a ceiling found by counting. */
const MAX_COUNTED = 2000;

/** How far changes are likely to be ahead of the clock at most; milliseconds. */
const AHEAD_MS = 3_600_000;

export interface ChangePosition<Id = unknown> {
  readonly since: Date;
  readonly _id: Id;
}

interface QueuedRange {
  /** The offset of the queue's times (see DEFERRED), and their minimum. */
  readonly offset?: number;
  /** The exclusive maximum of times. */
  readonly end?: Date;
}

/** A queue ordered by the time of a change, and its collection. */
interface Queued<Schema extends Document> extends QueuedRange {
  readonly collection: Pick<Collection<Schema>, 'find' | 'countDocuments'>;
  /** The path of the time. */
  readonly field: string;
  readonly readTime: (document: Schema) => Date | undefined;
  /** A condition for the whole queue. */
  readonly only?: object;
  readonly options: FindOptions;
}

const readChangeTime = ({ changes }: LeadDocument) => (changes?.since instanceof Date ? changes.since : undefined);

/** Finds leads by the time of their first undistributed change, oldest first. Reads only their pending changes. */
export const changedByTime = ({ leads: collection }: Pick<Collections, 'leads'>) =>
  byTime({ collection, field: 'changes.since', readTime: readChangeTime, options: PENDING });

/** Finds the deliveries of a consumer that are due in a range: see DEFERRED. */
export const deliveriesByTime = (
  { deliveries: collection }: Collections,
  consumer: number,
  range: QueuedRange = { end: new Date(DEFERRED) },
) =>
  byTime<DeliveryDocument>({
    collection,
    field: 'due',
    readTime: ({ due }) => due,
    only: { consumer },
    options: READ,
    ...range,
  });

/**
 * Finds documents by the time of a change, oldest first. Some engines sort all matches instead of reading the index in
 * order, so each query would cost as much as all changed leads. Queries are therefore limited to times below a ceiling,
 * which follows the found leads. The ceiling is an estimate. If too few leads are below it, it is raised, eventually
 * beyond every time, so no lead is missed. After a failure, which may mean too many matches, counting finds the ceiling,
 * because a count needs no order.
 */
function byTime<Schema extends Document>(queued: Queued<Schema>) {
  const { collection, field, readTime, only, offset = 0, end = ACKNOWLEDGED, options } = queued;
  const lowest = offset === 0 ? {} : { $gte: new Date(offset) };
  const timeByClock = () => Date.now() + offset;
  let ceiling = end;
  let hasFailed = false;
  const isBelow = (below: Date) => ({ ...only, [field]: { ...lowest, $lt: below } }) as Filter<Schema>;

  async function find(count: number, from?: object, order?: { readonly _id: 1 }): Promise<Schema[]> {
    if (hasFailed) await lowerByCounting(count);
    for (let step = FIRST_STEP_MS; ; step *= 2) {
      const below = ceiling;
      const filter = (from ? { $and: [isBelow(below), from] } : isBelow(below)) as Filter<Schema>;
      const found = await read(filter, { ...options, sort: { [field]: 1, ...order }, limit: count });
      if (found.length === count) lowerTo(found);
      if (found.length === count || below === end) return found;
      raise(below, step);
    }
  }

  async function read(filter: Filter<Schema>, options: FindOptions): Promise<Schema[]> {
    // Set when the query ends, because concurrent queries may end differently: the last one counts.
    const outcome = collection.find(filter, options).toArray();
    hasFailed = await outcome.then(
      () => false,
      () => true,
    );
    return outcome as Promise<Schema[]>;
  }

  /** Lowers the ceiling until at least `enough` documents are below it, and fewer than MAX_COUNTED. */
  async function lowerByCounting(enough: number): Promise<void> {
    let [low, high] = [offset, Math.min(ceiling.getTime(), timeByClock() + AHEAD_MS)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const counted = await collection.countDocuments(isBelow(new Date(middle)), { limit: MAX_COUNTED });
      if (counted < enough) low = middle;
      else high = middle;
      if (counted >= enough && counted < MAX_COUNTED) break;
    }
    ceiling = new Date(high);
  }

  function raise(above: Date, step: number): void {
    const raised = above.getTime() + step;
    ceiling = raised > timeByClock() + AHEAD_MS ? end : new Date(raised);
  }

  /** Lowers the ceiling so that about twice as many leads as found are below it. */
  function lowerTo(found: readonly Schema[]): void {
    const [first = 0, last = 0] = [found[0], found.at(-1)].map((each) => each && readTime(each)?.getTime());
    const lowered = last + Math.max(last - first, 1);
    if (lowered < ceiling.getTime()) ceiling = new Date(lowered);
  }

  return {
    toPosition(document: Schema): ChangePosition | undefined {
      const since = readTime(document);
      return since && { since, _id: document._id };
    },

    /** Finds the first documents; those of the same time are in any order. */
    first: (count: number) => find(count),

    /**
     * Finds the first documents behind a position, by time and id; null: from the start. Sorting by id as well may cost
     * a sort even on engines that read the index in order.
     */
    behind(position: ChangePosition | null, count: number) {
      const from = position
        ? {
            [field]: { $gte: position.since },
            $or: [{ [field]: { $gt: position.since } }, { _id: { $gt: position._id } }],
          }
        : undefined;
      if (position && position.since >= ceiling) raise(position.since, FIRST_STEP_MS);
      return find(count, from, { _id: 1 });
    },
  };
}

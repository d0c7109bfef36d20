import { type Collection, type Filter, type UpdateFilter, UUID, type WithId } from 'mongodb';
import { assert } from '../../../common/invariants.ts';
import { MAX_APPLIED_REQUESTS } from '../../domain/audit.ts';
import type { DecidedEvent } from '../decisions/decision.ts';
import { UnreadableRecord } from '../port/faults.ts';
import { type Connection, untilKnown } from './connection.ts';
import { appended, type Changeable, type HistoryEntry, hasFullHistory, historyEntry, makeRoom } from './history.ts';
import { READ } from './queries.ts';
import { isDuplicate, isOfDocument, isTooLarge, NotRepeatable, serverRefusal } from './server-refusal.ts';

/** What a change decides after it has read the document. */
export type DocumentDecision<Document, Outcome> =
  /** Nothing is written. */
  | { readonly outcome: Outcome }
  | { readonly outcome: Outcome; readonly insert: Document; readonly events?: readonly DecidedEvent[] | undefined }
  | {
      readonly outcome: Outcome;
      /** That the document is still as it was read; otherwise it is read again. */
      readonly where: Filter<Document>;
      /** Absent: nothing changes, and only a request that its caller may repeat is recorded. */
      readonly update?: UpdateFilter<Document>;
      readonly events?: readonly DecidedEvent[] | undefined;
      /** Names the record in the error when its history cannot grow; absent: the history is replaced. */
      readonly record?: Pick<UnreadableRecord, 'kind' | 'studioId' | 'id'> | undefined;
    };

export interface ChangeOf<Document, Outcome> {
  readonly which: Filter<Document>;
  /** What to read of the document besides the applied requests; default: all but its history. */
  readonly fields?: Readonly<Record<string, 1>>;
  /** The identity of the request, if its caller may repeat it. */
  readonly requestId?: string | undefined;
  /** Whether there is no such document before the first attempt to write. */
  readonly isNew?: boolean;
  /** A core makes the changes with one such key one after the other. */
  readonly mutexKey?: string;
  /**
   * Decides on the change. Must be repeatable.
   *
   * @param isApplied whether the document has the change already: by an earlier attempt, or an earlier call with the same
   *   request; then nothing is written
   */
  decide(
    found: WithId<Document> | null,
    isApplied: boolean,
    deadline: AbortSignal,
  ): Promise<DocumentDecision<Document, Outcome>>;
  /** Returns the outcome when a unique index has refused the change; undefined: it is attempted again. */
  onDuplicate?(): Promise<Outcome | undefined>;
}

/** What grows with every change. */
const GROWING_LISTS = ['history', 'appliedRequests'] as const;
const GROWING = { ...READ, projection: { history: 1, appliedRequests: 1 } } as const;

/**
 * Changes a document once, however often the response is lost. The identity of the request is stored in the document by
 * the same write, which does nothing if it is there already, and before each further attempt the document is read. So
 * no attempt undoes what others have written since an earlier one took effect, and of two attempts in flight only one
 * does.
 *
 * The identities are bounded, like the history. If so many changes followed that this one's may have been dropped, the
 * outcome is unknown.
 */
export function applyOnce<Document extends Changeable, Outcome>(
  { oldEvents }: Pick<Connection, 'oldEvents'>,
  collection: Collection<Document>,
  deadline: AbortSignal,
  change: ChangeOf<Document, Outcome>,
): Promise<Outcome> {
  const { which, fields, requestId, isNew, decide, onDuplicate } = change;
  const id = requestId === undefined ? new UUID() : new UUID(requestId);
  const projection = fields ? { ...fields, appliedRequests: 1 } : { history: 0 };
  /** The newest identity before the first attempt to write; null: there was none. */
  let newest: UUID | null | undefined;
  return untilKnown<Outcome>(deadline, async () => {
    const isRead = !isNew || newest !== undefined;
    const found = isRead
      ? ((await collection.findOne(which, { ...READ, projection })) as WithId<Document> | null)
      : null;
    const applied = identitiesIn(found?.appliedRequests);
    const isApplied = applied.some((each) => each.equals(id));
    if (!isApplied && newest !== undefined && mayBeDropped(newest, applied)) {
      throw new NotRepeatable('the outcome is unknown: too many changes followed');
    }
    const decision = await decide(found, isApplied, deadline);
    const { outcome } = decision;
    const isRecorded = 'insert' in decision || ('where' in decision && (decision.update || requestId !== undefined));
    if (isApplied || !isRecorded) return outcome;
    deadline.throwIfAborted();
    if (newest === undefined) newest = applied.at(-1) ?? null;
    const history = (decision.events ?? []).map(historyEntry);
    try {
      if ('insert' in decision) {
        await collection.insertOne({ ...decision.insert, history, appliedRequests: [id] } as never);
        return outcome;
      }
      const { where, update = {}, record } = decision;
      const hasRoom = history.length > 0 && hasFullHistory(false);
      const filter = { ...which, ...where, ...hasRoom, appliedRequests: { $ne: id } } as Filter<Document>;
      const isWritten = await updateWithEvents(collection, filter, { which, record, update, events: history, id });
      if (!isWritten && hasRoom) await makeRoom(collection, oldEvents, which);
      return isWritten ? outcome : undefined;
    } catch (error) {
      if (isDuplicate(error)) return onDuplicate?.();
      throw error;
    }
  });
}

/** Returns a function that makes changes of documents, each within a call. */
export function changer<Document extends Changeable>(connection: Connection, collection: Collection<Document>) {
  const mutex = new KeyedMutex();
  return <Outcome>(change: ChangeOf<Document, Outcome>): Promise<Outcome> =>
    connection.call((deadline) => {
      const keys = change.mutexKey === undefined ? [] : [change.mutexKey];
      return mutex.run(keys, () => applyOnce(connection, collection, deadline, change));
    });
}

/** Whether an identity that was added after `newest` may be gone from the list. */
const mayBeDropped = (newest: UUID | null, applied: readonly UUID[]): boolean =>
  newest === null ? applied.length >= MAX_APPLIED_REQUESTS : !applied.some((each) => each.equals(newest));

const identitiesIn = (list: unknown): UUID[] =>
  Array.isArray(list) ? list.filter((each): each is UUID => each instanceof UUID) : [];

interface EventfulUpdate<Document> extends Pick<ChangeOf<Document, unknown>, 'which'> {
  readonly record: Pick<UnreadableRecord, 'kind' | 'studioId' | 'id'> | undefined;
  readonly update: UpdateFilter<Document>;
  readonly events: readonly HistoryEntry[];
  readonly id: UUID;
}

/**
 * Updates a document with events and the identity of the request. If its history cannot grow, that is thrown, or,
 * for a change without a `record`, it is replaced by the new events; if there is no room for these either, it is
 * removed, which makes room for the update.
 *
 * @returns whether a document matched
 */
async function updateWithEvents<Document extends Changeable>(
  collection: Collection<Document>,
  filter: Filter<Document>,
  { which, record, update, events, id }: EventfulUpdate<Document>,
): Promise<boolean> {
  const apply = async (operators: object): Promise<boolean> =>
    (await collection.updateOne(filter, operators as UpdateFilter<Document>)).matchedCount === 1;
  const $push = {
    appliedRequests: { $each: [id], $slice: -MAX_APPLIED_REQUESTS },
    ...(events.length > 0 && { history: appended(events) }),
  };
  try {
    return await apply({ ...update, $push });
  } catch (error) {
    if (!isOfDocument(error)) throw error;
    // The code alone does not say that the history is the reason.
    const found = await collection.findOne(which, GROWING);
    const damaged = found && GROWING_LISTS.find((list) => found[list] !== undefined && !Array.isArray(found[list]));
    if (record && damaged) throw new UnreadableRecord(record.kind, record, damaged);
    const isReason = damaged || (isTooLarge(error) && GROWING_LISTS.some((list) => (found?.[list]?.length ?? 0) > 0));
    if (record || !isReason) throw error;
  }
  const $set = { ...(update as { readonly $set?: object }).$set, history: events, appliedRequests: [id] };
  try {
    return await apply({ ...update, $set });
  } catch (error) {
    if (!isTooLarge(error)) throw error;
  }
  // Without its identity, the write must not be repeated.
  return apply({ ...update, $unset: { history: 1, appliedRequests: 1 } }).catch((error) => {
    throw serverRefusal(error) ?? new NotRepeatable('the outcome is unknown', error);
  });
}

/**
 * Returns the change of a document that only stores an event in it.
 *
 * @param fresh what is stored with the event if there is no document; absent: then nothing is
 */
export const recorded = <Document>(event: DecidedEvent, fresh?: Document) => ({
  fields: { _id: 1 } as const,
  async decide(found: object | null): Promise<DocumentDecision<Document, null>> {
    if (found) return { outcome: null, where: {}, update: {}, events: [event] };
    return { outcome: null, ...(fresh && { insert: fresh, events: [event] }) };
  },
});

/**
 * A mutex per key. It is an optimisation: the database enforces uniqueness without it, but many concurrent writes to
 * one index entry are slow on every engine and fail on some.
 */
export class KeyedMutex {
  readonly #holders = new Map<string, Promise<unknown>>();

  /**
   * Runs work while no other work holds any of the keys. A waiter re-checks each time a holder finishes; all waiters
   * check concurrently, so that one finished creation settles all of them.
   *
   * @param check returns the result if the work is no longer needed, else undefined
   */
  async run<Result>(
    keys: readonly string[],
    work: () => Promise<Result>,
    check: () => Promise<Result | undefined> = async () => undefined,
  ): Promise<Result> {
    for (;;) {
      const holders = keys.flatMap((key) => this.#holders.get(key) ?? []);
      if (holders.length === 0) return this.#hold(keys, work);
      await Promise.allSettled(holders);
      const result = await check();
      if (result !== undefined) return result;
    }
  }

  async #hold<Result>(keys: readonly string[], work: () => Promise<Result>): Promise<Result> {
    assert(!keys.some((key) => this.#holders.has(key)), 'mutex_key_held_once');
    const running = work();
    for (const key of keys) this.#holders.set(key, running);
    try {
      return await running;
    } finally {
      for (const key of keys) this.#holders.delete(key);
    }
  }
}

import { type Collection, type Filter, type UpdateFilter, UUID, type WithId } from 'mongodb';
import { assert } from '../../../common/invariants.ts';
import { MAX_APPLIED_REQUESTS } from '../../domain/audit.ts';
import type { DecidedEvent } from '../decisions/decision.ts';
import { type RecordName, UnreadableRecord } from '../port/faults.ts';
import { type Connection, untilKnown } from './connection.ts';
import { appended, type Changeable, type HistoryEntry, hasFullHistory, historyEntry, makeRoom } from './history.ts';
import { READ } from './queries.ts';
import { isDuplicate, isOfDocument, isTooLarge, NotRepeatable, serverRefusal } from './server-refusal.ts';

/** The decision of a change about the document as read. */
export type DocumentDecision<Document, Outcome> =
  /** Nothing is written. */
  | { readonly outcome: Outcome }
  | { readonly outcome: Outcome; readonly insert: Document; readonly events?: readonly DecidedEvent[] | undefined }
  | {
      readonly outcome: Outcome;
      /** The document must still be as read; otherwise it is read again. */
      readonly where: Filter<Document>;
      /** Absent: nothing changes; only a repeatable request is recorded. */
      readonly update?: UpdateFilter<Document>;
      readonly events?: readonly DecidedEvent[] | undefined;
      /** Names the record in the error if its history cannot grow; absent: the history is replaced. */
      readonly record?: RecordName | undefined;
    };

export interface ChangeOf<Document, Outcome> {
  readonly which: Filter<Document>;
  /** The fields to read besides the applied requests; default: all except the history. */
  readonly fields?: Readonly<Record<string, 1>>;
  /** The identity of a repeatable request. */
  readonly requestId?: string | undefined;
  /** Whether no such document exists before the first attempt to write. */
  readonly isNew?: boolean;
  /** A core makes changes with the same key one after the other. */
  readonly mutexKey?: string;
  /**
   * Decides on the change. Must be repeatable.
   *
   * @param isApplied whether an earlier attempt, or call with the same request, made the change; then nothing is written
   */
  decide(
    found: WithId<Document> | null,
    isApplied: boolean,
    deadline: AbortSignal,
  ): Promise<DocumentDecision<Document, Outcome>>;
  /** Returns the outcome after a unique index refused the change; undefined: retry. */
  onDuplicate?(): Promise<Outcome | undefined>;
}

/** The fields that grow with every change. */
const GROWING_LISTS = ['history', 'appliedRequests'] as const;
const GROWING = { ...READ, projection: { history: 1, appliedRequests: 1 } } as const;

/**
 * Changes a document exactly once, even if responses are lost. The same write stores the identity of the request in the
 * document, and does nothing if the document has it already. Each retry first reads the document. A retry therefore never
 * undoes what others wrote after an earlier attempt, and only one of two attempts in flight takes effect.
 *
 * The number of identities is bounded, like the history. If so many changes followed that the identity may have been
 * dropped, the outcome is unknown.
 */
export function applyOnce<Document extends Changeable, Outcome>(
  { oldEvents }: Connection,
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

/** Returns a function that changes documents, each change within a call. */
export function changer<Document extends Changeable>(connection: Connection, collection: Collection<Document>) {
  const mutex = new KeyedMutex();
  return <Outcome>(change: ChangeOf<Document, Outcome>): Promise<Outcome> =>
    connection.call((deadline) => {
      const keys = change.mutexKey === undefined ? [] : [change.mutexKey];
      return mutex.run(keys, () => applyOnce(connection, collection, deadline, change));
    });
}

/** Whether an identity added after `newest` may have been dropped. */
const mayBeDropped = (newest: UUID | null, applied: readonly UUID[]): boolean =>
  newest === null ? applied.length >= MAX_APPLIED_REQUESTS : !applied.some((each) => each.equals(newest));

const identitiesIn = (list: unknown): UUID[] =>
  Array.isArray(list) ? list.filter((each): each is UUID => each instanceof UUID) : [];

interface EventfulUpdate<Document> {
  readonly which: Filter<Document>;
  readonly record: RecordName | undefined;
  readonly update: UpdateFilter<Document>;
  readonly events: readonly HistoryEntry[];
  readonly id: UUID;
}

/**
 * Updates a document with events and the identity of the request. If its history cannot grow, a change with a `record`
 * throws. Otherwise the new events replace the history. If there is no room for them either, the history is removed,
 * which makes room for the update.
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
    // The code alone does not tell whether the history is the cause.
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
  // Without its identity, the write must not be retried.
  return apply({ ...update, $unset: { history: 1, appliedRequests: 1 } }).catch((error) => {
    throw serverRefusal(error) ?? new NotRepeatable('the outcome is unknown', error);
  });
}

/**
 * Returns a change of a document that only stores an event in it.
 *
 * @param fresh the document to create if there is none; absent: then nothing is stored
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
 * one index entry are slow on every engine, and fail on some.
 */
export class KeyedMutex {
  readonly #holders = new Map<string, Promise<unknown>>();

  /**
   * Runs work while no other work holds any of the keys. Waiters check again each time a holder finishes. They check
   * concurrently, so one finished creation can answer all of them.
   *
   * @param check returns the result if the work is no longer needed; undefined otherwise
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

import { BSON, type Collection, type Filter, type UpdateFilter, type UUID } from 'mongodb';
import { type AuditAction, MAX_AUDIT_EVENTS } from '../../domain/audit.ts';
import type { DecidedEvent } from '../decisions/decision.ts';
import { READ } from './queries.ts';
import { isInserted } from './server-refusal.ts';

/** The part of every document that records its changes. */
export interface Changeable {
  /** Absent until the first event. */
  readonly history?: readonly HistoryEntry[];
  /** The number of events moved out of the history; absent: none. */
  readonly moved?: number;
  /** The identities of the latest MAX_APPLIED_REQUESTS changes. Absent until the first change by a release that stores them. */
  readonly appliedRequests?: readonly UUID[];
}

/** An event in the history of a document. The order is that of the writes. */
export interface HistoryEntry {
  readonly action: AuditAction;
  readonly memberId: string | null;
  readonly time: Date;
  readonly caller?: string;
  readonly callId?: string;
  readonly from?: string | null;
  readonly to?: string | null;
}

/** Events moved out of a history, in their order. The `_id` is an oldEventsId. */
export interface OldEventsDocument {
  readonly _id: string;
  readonly history: readonly HistoryEntry[];
}

/** The number of events moved at once. */
export const MOVED_AT_ONCE = 100;

/** The number of events at which a history is full. The events that a list may return always stay in the history. */
const FULL = MAX_AUDIT_EVENTS + MOVED_AT_ONCE;
export const hasFullHistory = ($exists: boolean) => ({ [`history.${FULL - 1}`]: { $exists } });

/** Returns the `_id` for events moved out of a history. @param moved the number moved earlier, so that the `_id`s are in the events' order */
export const oldEventsId = (collection: string, _id: unknown, moved: unknown): string =>
  `${collection} ${BSON.EJSON.stringify(_id, { relaxed: false })} ${String(moved).padStart(9, '0')}`;

/** Returns the `_id` of the document from which the events were moved. */
export const ownerOfOldEvents = (oldEventsId: string): unknown =>
  BSON.EJSON.parse(oldEventsId.slice(oldEventsId.indexOf(' '), oldEventsId.lastIndexOf(' ')));

/** Adds events to a history that was not full. If it is longer than this release allows, the newest stay. */
export const appended = (events: readonly HistoryEntry[]) => ({ $each: [...events], $slice: -(FULL + MOVED_AT_ONCE) });

export const historyEntry = ({ memberId, caller, callId, ...event }: DecidedEvent): HistoryEntry => ({
  ...event,
  memberId,
  ...(caller && { caller }),
  ...(callId && { callId }),
});

const MOVABLE = { ...READ, projection: { history: 1, moved: 1 } } as const;

/**
 * Moves the oldest events out of a document's full history. First stores them elsewhere, and only then removes them;
 * either step may have been done by others.
 */
export async function makeRoom<Document extends Changeable>(
  collection: Collection<Document>,
  oldEvents: Collection<OldEventsDocument>,
  which: Filter<Document>,
): Promise<void> {
  const found = await collection.findOne({ ...which, ...hasFullHistory(true) } as Filter<Document>, MOVABLE);
  if (!found) return;
  const { _id, history = [] } = found;
  const moved = Number.isSafeInteger(found.moved) ? Number(found.moved) : 0;
  const id = oldEventsId(collection.collectionName, _id, moved);
  const oldest = history.slice(0, MOVED_AT_ONCE);
  await isInserted(oldEvents.insertOne({ _id: id, history: oldest }));
  const asRead = { moved: found.moved ?? null, history: { $size: history.length } };
  const $push = { history: { $each: [], $slice: MOVED_AT_ONCE - history.length } };
  const update = { $set: { moved: moved + MOVED_AT_ONCE }, $push };
  await collection.updateOne({ ...which, ...asRead } as Filter<Document>, update as unknown as UpdateFilter<Document>);
}

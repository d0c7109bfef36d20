import type { AnyBulkWriteOperation, Collection, Document, Filter, WriteError } from 'mongodb';
import type { ChangeMark } from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import type { SomeLeads } from '../port/resending.ts';
import {
  ACKNOWLEDGED,
  type ChangesDocument,
  type LeadDocument,
  lastIdOfFull,
  OF_MANY,
  READ,
  someOf,
} from './documents.ts';
import { refusedWrites } from './server-refusal.ts';

/** Reads of a lead only its mark, and what that needs. */
export const MARK = { ...READ, projection: { studioId: 1, changes: 1, createdAt: 1, updatedAt: 1 } } as const;

/** Finds the marks of some leads, and the id to continue after; null: there are no more. */
export async function findSome(leads: Pick<Collection<LeadDocument>, 'find'>, some: SomeLeads) {
  const limit = 'limit' in some ? some.limit : 0;
  const found = await leads.find(someOf(some), { ...MARK, sort: { _id: 1 }, limit }).toArray();
  return { found: found.filter(({ updatedAt }) => isIn(updatedAt, some.updated)), next: lastIdOfFull(found, limit) };
}

type Marked = Pick<LeadDocument, 'changes' | 'createdAt'>;

/** The mark of a lead as read. What this service did not write of it counts as that of its creation. */
export function markOf({ changes, createdAt: created }: Marked): ChangeMark {
  const { revision, since, kinds } = Object(changes);
  return {
    revision: Number.isSafeInteger(revision) ? revision : 0,
    since: since?.getTime?.() === ACKNOWLEDGED.getTime() ? null : since instanceof Date ? since : undefined,
    kinds: isPlainObject(kinds) ? kinds : { created },
  };
}

/**
 * A condition that the lead was not marked since it was read: the next revision follows from the one that was read. If it
 * was acknowledged since, its next mark names too many kinds, never too few. An invalid mark may not equal itself once it is read.
 */
export const sameMark = ({ changes }: Pick<Marked, 'changes'>) =>
  (isMark(changes) ? { 'changes.revision': changes.revision ?? null } : {}) as object;

/**
 * A condition that this service has not marked the lead since it was read. An invalid revision may not equal itself once it is
 * read; then it is none of this service.
 */
export function unmarkedSince({ changes }: Pick<Marked, 'changes'>): object {
  const { revision = null } = Object(changes);
  const isSame = { 'changes.revision': revision };
  if (revision === null || Number.isSafeInteger(revision)) return isSame;
  return { $or: [isSame, { 'changes.revision': { $not: { $gte: 0, $lte: Number.MAX_SAFE_INTEGER } } }] };
}

function isMark(changes: unknown): changes is ChangesDocument {
  if (!isPlainObject(changes)) return false;
  const { since, revision, kinds } = changes;
  return (
    (since === undefined || since instanceof Date) &&
    (revision === undefined || Number.isSafeInteger(revision)) &&
    (kinds === undefined || isPlainObject(kinds))
  );
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === '[object Object]';

/** A condition that the lead is still as it was read, whatever has changed it. */
export const asRead = (found: LeadDocument): Filter<LeadDocument> => ({
  stage: found.stage,
  updatedAt: found.updatedAt,
  ...sameMark(found),
});

/** Error codes of an update that is refused because of its document: its fields, or its size. */
export const OF_DOCUMENT: readonly unknown[] = [2, 9, 14, 28, 121, 10334, 17419, 285999133];

/** The maximum number of updates in a command. A slow server takes milliseconds for each, and has STORE_SILENCE_MS for a command. */
const MAX_UPDATES = 100;

/**
 * Updates documents, each for itself; returns how many were found and how many changed, and the indices of the updates that the
 * database refused because of their document. @throws any other error: some may have been made
 */
export async function updateEach<Schema extends Document>(
  collection: Pick<Collection<Schema>, 'bulkWrite'>,
  updates: readonly AnyBulkWriteOperation<Schema>[],
) {
  const sum = { found: 0, changed: 0, refused: new Set<number>() };
  for (let start = 0; start < updates.length; start += MAX_UPDATES) {
    const part = updates.slice(start, start + MAX_UPDATES);
    const { result, refusals } = await collection
      .bulkWrite(part, OF_MANY)
      .then((result) => ({ result, refusals: [] as readonly WriteError[] }), refusalsIn);
    sum.found += result.matchedCount;
    sum.changed += result.modifiedCount;
    for (const { index } of refusals) sum.refused.add(start + index);
  }
  return sum;
}

/** Returns the updates that the database refused, each because of its document. @throws any other error */
function refusalsIn(error: unknown) {
  const { result, refusals } = refusedWrites(error);
  // The command failed as a whole, or every update would.
  if (refusals.length === 0 || refusals.some(({ code }) => !OF_DOCUMENT.includes(code))) throw error;
  return { result, refusals };
}

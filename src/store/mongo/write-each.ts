import {
  type AnyBulkWriteOperation,
  type Collection,
  type Document,
  MongoBulkWriteError,
  type OptionalUnlessRequiredId,
  type WriteError,
} from 'mongodb';
import { BULK_OPTIONS } from './queries.ts';
import { OF_DOCUMENT } from './server-refusal.ts';

/**
 * Returns the refused writes of a command, and the result of the others.
 *
 * @param codes the only codes of such a refusal; default: any
 * @throws any other error, or if the outcome of the other writes is unknown
 */
function refusedWrites(error: unknown, codes?: readonly unknown[]) {
  if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError()) throw error;
  const refusals: readonly WriteError[] = [error.writeErrors].flat();
  // The command failed as a whole, or every write would.
  if (refusals.length === 0 || (codes && refusals.some(({ code }) => !codes.includes(code)))) throw error;
  return { result: error.result, refusals };
}

/**
 * Inserts documents independently of each other; returns the refused ones.
 *
 * @param codes see refusedWrites
 * @throws any other error: some may be inserted
 */
export async function insertEach<Schema extends Document>(
  collection: Collection<Schema>,
  documents: readonly OptionalUnlessRequiredId<Schema>[],
  codes?: readonly number[],
): Promise<readonly WriteError[]> {
  try {
    await collection.insertMany(documents, BULK_OPTIONS);
    return [];
  } catch (error) {
    const { result, refusals } = refusedWrites(error, codes);
    // When the whole command fails, the driver also throws this error, with only some of them.
    if (result.insertedCount + refusals.length !== documents.length) throw error;
    return refusals;
  }
}

/** The maximum number of updates in a command. A slow server takes milliseconds for each, and has STORE_SILENCE_MS for a command. */
const MAX_UPDATES = 100;

/**
 * Updates documents independently of each other. Returns the numbers of found and changed ones, and the indices of updates that
 * the database refused because of their documents. @throws any other error: some may have been made
 */
export async function updateEach<Schema extends Document>(
  collection: Collection<Schema>,
  updates: readonly AnyBulkWriteOperation<Schema>[],
) {
  const sum = { found: 0, changed: 0, refused: new Set<number>() };
  for (let start = 0; start < updates.length; start += MAX_UPDATES) {
    const part = updates.slice(start, start + MAX_UPDATES);
    const { result, refusals } = await collection.bulkWrite(part, BULK_OPTIONS).then(
      (result) => ({ result, refusals: [] as readonly WriteError[] }),
      (error) => refusedWrites(error, OF_DOCUMENT),
    );
    sum.found += result.matchedCount;
    sum.changed += result.modifiedCount;
    for (const { index } of refusals) sum.refused.add(start + index);
  }
  return sum;
}

import type { Db, Document } from 'mongodb';
import { MAX_GROUPS, MAX_IN_GROUP } from '../index-faults.ts';
import type { Index } from './indexes.ts';

/** Timeout of the search, which reads a whole collection; milliseconds. */
const SEARCH_MS = 600_000;

/** Finds groups of documents that violate a unique index. Returns only their ids, oldest first. */
export async function duplicatesUnder(database: Db, { collection, key }: Index): Promise<readonly string[][]> {
  const documents = database.collection(collection);
  const fields = Object.keys(key);
  // An index has an entry for each value of an array; a missing field counts as null.
  const unwound = fields.map((field) => ({ $unwind: { path: `$${field}`, preserveNullAndEmptyArrays: true } }));
  const values = Object.fromEntries(fields.map((field, place) => [`field${place}`, `$${field}`]));
  const groups = await documents
    .aggregate(
      [
        ...unwound,
        { $group: { _id: values, count: { $sum: 1 } } },
        { $match: { count: { $gt: 1 } } },
        { $limit: MAX_GROUPS },
      ],
      { allowDiskUse: true, maxTimeMS: SEARCH_MS },
    )
    .toArray();
  return Promise.all(
    groups.map(async ({ _id }) => {
      const same = Object.fromEntries(fields.map((field, place) => [field, _id[`field${place}`] ?? null]));
      const found = await documents
        .find(same, { projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(MAX_IN_GROUP)
        .toArray();
      return found.map(documentName);
    }),
  );
}

/** The studio and id of a lead; the id of a key. */
function documentName({ _id }: Document): string {
  return _id.studioId === undefined ? String(_id) : `${_id.studioId}/${_id.id}`;
}

import { MongoBulkWriteError } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { checkedRequest } from '../checked.ts';
import { readPage } from '../pages.ts';
import type { ReportUnreadable, RequestLogStore } from '../store.ts';
import type { Connection } from './connection.ts';
import { leadIdsBetween, leadKey, READ, type RequestDocument } from './documents.ts';
import { DUPLICATE } from './server-refusal.ts';

/**
 * The log of requests, in MongoDB: a document for each, in the order of lists by its `_id`. One document for a studio's would
 * be written anew, all of it, for each batch.
 */
export function mongoRequestLog(
  { requests, call }: Pick<Connection, 'requests' | 'call'>,
  report: ReportUnreadable,
): RequestLogStore {
  const below = (studioId: string, id: string | null) => ({ studioId, _id: leadIdsBetween(studioId, null, id) });
  const idOf = ({ _id }: Pick<RequestDocument, '_id'>) => _id.id.toString();
  return {
    recordRequests: (recorded) =>
      call(async () => {
        const documents = recorded.map(({ id, ...fields }) => ({ _id: leadKey(fields.studioId, id), ...fields }));
        try {
          await requests.insertMany(documents, { ordered: false, maxTimeMS: STORE_SILENCE_MS });
        } catch (error) {
          if (!isStored(error)) throw error;
        }
      }),

    listRequests: (studioId, before, limit) =>
      call(() => {
        const read = (after: string | null, count: number) =>
          requests.find(below(studioId, after), READ).sort({ _id: -1 }).limit(count).toArray();
        const check = ({ _id, ...fields }: RequestDocument) => checkedRequest({ ...fields, id: idOf({ _id }) });
        return readPage({ read, idOf, check }, { after: before, limit }, report);
      }),

    removeRequests: (studioId, kept) =>
      call(async () => {
        let end: string | null = null;
        if (kept) {
          const ids = { ...READ, projection: { _id: 1 }, skip: kept.newest - 1 };
          const [last] = await requests.find(below(studioId, null), ids).sort({ _id: -1 }).limit(1).toArray();
          end = last && idOf(last) > kept.since ? idOf(last) : kept.since;
        }
        await requests.deleteMany(below(studioId, end), { maxTimeMS: STORE_SILENCE_MS });
      }),
  };
}

/** Whether an insert has failed only because each of the refused documents is there. */
function isStored(error: unknown): boolean {
  if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError()) return false;
  const refusals = [error.writeErrors].flat();
  return refusals.length > 0 && refusals.every(({ code }) => code === DUPLICATE);
}

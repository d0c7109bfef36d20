import { checkedRequest } from '../checked.ts';
import { readPage } from '../pages.ts';
import type { RequestLogStore } from '../port/request-log.ts';
import type { Connection } from './connection.ts';
import type { RequestDocument } from './documents.ts';
import { BULK_OPTIONS, ID_ONLY, leadIdsBetween, leadKey, READ } from './queries.ts';
import { DUPLICATE } from './server-refusal.ts';
import { insertEach } from './write-each.ts';

const toId = ({ _id }: RequestDocument) => String(_id.id);

const toRequest = ({ _id, ...fields }: RequestDocument) => checkedRequest({ ...fields, id: String(_id.id) });

/**
 * The log of requests, in MongoDB: one document each, ordered by its `_id`. A single document for a studio would be
 * rewritten as a whole for each batch.
 */
export function mongoRequestLog({ requests, call, report }: Connection): RequestLogStore {
  const below = (studioId: string, id: string | null) => ({ studioId, _id: leadIdsBetween(studioId, null, id) });
  return {
    recordRequests: (recorded) =>
      call(async () => {
        const documents = recorded.map(({ id, ...fields }) => ({ _id: leadKey(fields.studioId, id), ...fields }));
        await insertEach(requests, documents, [DUPLICATE]);
      }),

    listRequests: (studioId, before, limit) =>
      call(() => {
        const read = (after: string | null, count: number) =>
          requests.find(below(studioId, after), { ...READ, sort: { _id: -1 }, limit: count }).toArray();
        return readPage({ read, toId, check: toRequest }, { after: before, limit }, report);
      }),

    removeRequests: (studioId, kept) =>
      call(async () => {
        let end: string | null = null;
        if (kept) {
          const options = { ...ID_ONLY, sort: { _id: -1 }, skip: kept.newest - 1 } as const;
          const last = await requests.findOne(below(studioId, null), options);
          end = last && toId(last) > kept.since ? toId(last) : kept.since;
        }
        await requests.deleteMany(below(studioId, end), BULK_OPTIONS);
      }),
  };
}

import type { LoggedRequest } from '../../domain/request-log.ts';
import { checkedRequest, type Unchecked } from '../checked.ts';
import { readPage } from '../pages.ts';
import type { RequestLogStore } from '../port/request-log.ts';
import type { Connection } from './connection.ts';
import { objectIn } from './rows.ts';

const AFTER_ALL_IDS = 'g';

export function sqliteRequestLog({ prepare, plainCommits, report }: Connection): RequestLogStore {
  const insert = prepare('INSERT OR IGNORE INTO logged_requests (studio_id, id, request) VALUES (?, ?, ?)');
  const select = prepare<Row>(
    'SELECT studio_id, id, request FROM logged_requests WHERE studio_id = ? AND id < ? ORDER BY id DESC LIMIT ?',
  );
  const remove = prepare(`
    DELETE FROM logged_requests WHERE studio_id = :studioId AND id < max(:since, coalesce((
      SELECT id FROM logged_requests WHERE studio_id = :studioId ORDER BY id DESC LIMIT 1 OFFSET :newest - 1), ''))`);
  return {
    recordRequests: (requests) =>
      plainCommits.write(() => {
        for (const { studioId, id, ...request } of requests) insert.run(studioId, id, JSON.stringify(request));
      }),

    async listRequests(studioId, before, limit) {
      const read = (after: string | null, count: number) => select.all(studioId, after ?? AFTER_ALL_IDS, count);
      const check = (row: Row) => checkedRequest(requestIn(row));
      return readPage({ read, toId: ([, id]) => id, check }, { after: before, limit }, report);
    },

    removeRequests: (studioId, { since, newest } = { since: AFTER_ALL_IDS, newest: 1 }) =>
      plainCommits.write(() => void remove.run({ studioId, since, newest })),
  };
}

type Row = [studioId: string, id: string, request: string];

const requestIn = ([studioId, id, request]: Row): Unchecked<LoggedRequest> => ({
  ...Object(objectIn(request)),
  studioId,
  id,
});

import type { DatabaseSync } from 'node:sqlite';

/** The number of newest requests that are recognised when they are repeated; each takes about 60 bytes. */
export const MAX_STORED_REQUESTS = 100_000;

/**
 * The callers' requests that took effect. Within a process the outcome of a commit is known, so only a request that its
 * caller may repeat has to be stored, in the transaction of its change. To be used within a write.
 */
export function appliedRequests(database: DatabaseSync) {
  const select = database.prepare("SELECT 1 FROM applied_requests WHERE id = unhex(?, '-')");
  const insert = database.prepare("INSERT INTO applied_requests (id) VALUES (unhex(?, '-'))");
  const removeOld = database.prepare('DELETE FROM applied_requests WHERE number <= ?');
  return {
    has: (requestId: string | undefined): boolean => requestId !== undefined && select.get(requestId) !== undefined,

    add(requestId: string | undefined): void {
      if (requestId === undefined) return;
      const { lastInsertRowid } = insert.run(requestId);
      removeOld.run(Number(lastInsertRowid) - MAX_STORED_REQUESTS);
    },
  };
}

import { randomUUID } from 'node:crypto';
import { pageTokenAfter } from '../src/domain/cursor.ts';
import { type Asking, openAsking } from './asking.ts';
import { cpuTimeUs } from './cpu-time.ts';
import { type Access, type Call, expect } from './growth-access.ts';
import { type LoadedDatabase, requestsTo } from './growth-database.ts';
import { BUSY, PAGE, QUIET } from './growth-leads.ts';
import { atTheEnd } from './processes.ts';
import { startCoreAndGateway } from './targets.ts';

/**
 * Calls a database by REST, through a gateway and a core, over keep-alive connections.
 *
 * @param connections the maximum number of concurrent requests
 */
export async function accessProduct(database: LoadedDatabase, connections: number): Promise<Access> {
  const { leads } = database;
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL: database.url });
  const busy = requestsTo(url, database, BUSY);
  const quiet = requestsTo(url, database, QUIET);
  const callers: Promise<Asking>[] = [];
  const close = async () => {
    for (const caller of callers) (await caller).close();
  };
  // Runs before the processes are stopped, which wait for their clients.
  atTheEnd(close);
  let sent = 0;
  /** Uses the connections in turn. Each opens at its first request, because the gateway closes idle ones. */
  const ask = async (request: Buffer) => {
    const index = sent % connections;
    sent += 1;
    callers[index] ??= openAsking(url);
    return (await callers[index]).ask(request);
  };

  /** Sends requests concurrently; `check` gets the JSON of the responses. */
  const call =
    (status: number, requests: readonly Buffer[], check: (answers: Answer[]) => void): Call =>
    async () => {
      const replies = await Promise.all(requests.map(ask));
      return () => {
        for (const reply of replies) expect(reply.status === status, reply);
        check(replies.map(({ text }) => JSON.parse(text)));
      };
    };
  const callForLead = (status: number, request: Buffer, id: string) =>
    call(status, [request], ([answer]) => expect(answer?.lead?.id === id, answer));

  return {
    leads,
    create: (count) =>
      call(
        201,
        Array.from({ length: count }, () => busy.creation(randomUUID())),
        (answers) => leads.created(answers.map(({ lead }) => lead?.id ?? '')),
      ),
    replay: ({ lead, claims }) => callForLead(201, busy.creation(claims.idempotencyKey), lead.id),
    read: (id) => callForLead(200, busy.lead(id), id),
    list({ studioId, after, first, isLast }) {
      const cursor = after === null ? null : pageTokenAfter('leads', studioId, after);
      return call(200, [(studioId === BUSY ? busy : quiet).page(cursor)], ([page]) => {
        const isRight = page?.leads?.length === PAGE && page.leads[0]?.id === first;
        expect(isRight && (page.nextCursor === null) === isLast, page);
      });
    },
    cpuTimeUs: () => cpuTimeUs(pids.core) + cpuTimeUs(pids.gateway),
    close,
  };
}

/** The parsed body of a response. */
interface Answer {
  readonly lead?: { readonly id: string };
  readonly leads?: readonly { readonly id: string }[];
  readonly nextCursor?: string | null;
}

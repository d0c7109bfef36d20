import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MemberRole, StudioStatus } from '../proto/gen/leadintake/v1/directory_pb.ts';
import { pageTokenAfter } from '../src/domain/cursor.ts';
import { DAY_MS } from '../test/support/builders.ts';
import { BOTH_SCOPES, type CoreClients, connectToCore } from '../test/support/core-clients.ts';
import { type Asking, openAsking } from './asking.ts';
import { cpuTimeUs } from './cpu-time.ts';
import { type Access, type Call, expect } from './growth-access.ts';
import type { LoadedDatabase } from './growth-database.ts';
import { BUSY, PAGE, QUIET, SOURCE_ID } from './growth-leads.ts';
import { LeadRequests } from './lead-requests.ts';
import { atTheEnd } from './processes.ts';
import { startCoreAndGateway } from './targets.ts';

/**
 * Calls a database as the product's callers do: by REST, through a gateway and a core, over keep-alive connections.
 *
 * @param connections how many requests can be under way at once
 */
export async function accessProduct({ url: databaseUrl, leads }: LoadedDatabase, connections: number): Promise<Access> {
  const { url, coreUrl, coreToken, pids } = await startCoreAndGateway({ DATABASE_URL: databaseUrl });
  const core = connectToCore(coreUrl, coreToken);
  const requestsTo = async (studioId: string) =>
    new LeadRequests({ url, secret: await arrangeKey(core, studioId), sourceId: SOURCE_ID });
  const busy = await requestsTo(BUSY);
  const quiet = await requestsTo(QUIET);
  core.close();
  const callers: Promise<Asking>[] = [];
  const close = async () => {
    for (const caller of callers) (await caller).close();
  };
  // Before the processes are stopped, which wait for their callers.
  atTheEnd(close);
  let sent = 0;
  /** On each connection in turn; one opens when its turn comes first, because the gateway closes those that stay silent. */
  const ask = async (request: Buffer) => {
    const place = sent % connections;
    sent += 1;
    callers[place] ??= openAsking(url);
    return (await callers[place]).ask(request);
  };

  /** Sends requests at once; `check` gets the JSON of their answers. */
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

/** What the answers that are asked for carry. */
interface Answer {
  readonly lead?: { readonly id: string };
  readonly leads?: readonly { readonly id: string }[];
  readonly nextCursor?: string | null;
}

/** Tells a core what the CRM would of a studio that has leads already; gives the secret of a key. */
export async function arrangeKey({ directory, apiKeys }: CoreClients, studioId: string): Promise<string> {
  const memberId = 'owner';
  await directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } });
  await directory.putMember({ member: { studioId, id: memberId, role: MemberRole.OWNER } });
  await directory.putLeadSource({ leadSource: { studioId, id: SOURCE_ID, name: 'Website form', enabled: true } });
  const expireTime = timestampFromMs(Date.now() + DAY_MS);
  const { secret } = await apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'Website',
    scopes: [...BOTH_SCOPES],
    expireTime,
  });
  return secret;
}

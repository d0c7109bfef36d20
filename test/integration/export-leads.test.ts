import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import { toBinary, toJson } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CoreSessions } from '../../common/core-connection.ts';
import { MAX_CALL_MS } from '../../common/deadlines.ts';
import {
  type ExportLeadsResponse,
  ExportLeadsResponseSchema,
  LeadIntakeService,
  LeadSchema,
  LeadStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { MAX_AUDIT_EVENTS } from '../../src/domain/audit.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner } from '../../src/rpc/run-call.ts';
import { openStore } from '../../src/store/open-store.ts';
import { aLead, aStudio, BY, HARD_TEXTS, keysFor, times } from '../support/builders.ts';
import { findRefusal, type GrpcCaller } from '../support/grpc.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { aCoreOn } from './a-core.ts';
import { withToken } from './transports.ts';

const RPC = 'LeadIntakeService/ExportLeads';

/** The maximum number of leads in a message. */
const MAX_IN_A_MESSAGE = 100;

/** The longest note, in characters of 3 bytes: a full message of such leads has half a megabyte. */
const LONG_NOTE = '長'.repeat(2000);

/** A message of the export, as the gRPC client returns it. */
interface Sent {
  readonly leads: readonly { readonly id: string; readonly studioId: string }[];
  readonly resumeToken: string;
}

/** Starts a core in this process whose page reads, log lines and metrics the test sees. */
async function aCore(path = join(temporaryFolder(), 'leads.db')) {
  const store = await openStore(`sqlite:${path}`);
  const walkLeads = vi.fn(store.walkLeads);
  const lines: Record<string, unknown>[] = [];
  const log = pino(new Writable({ write: (line, _, done) => done(void lines.push(JSON.parse(line))) }));
  const metrics = createCoreMetrics();
  const core = await aCoreOn({ ...store, walkLeads }, callRunner(log, metrics));
  const { url, caller } = core;
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= core.stop().then(() => store.close());
    return stopped;
  };
  onTestFinished(async () => {
    core.close();
    await stop();
  });
  return { path, store, url, caller, walkLeads, lines, metrics, stop };
}

type Core = Awaited<ReturnType<typeof aCore>>;

/** Creates a studio with these leads; returns them in the order of their ids. */
async function studioWith({ store }: Core, studioId: string, leads: readonly Partial<Lead>[]): Promise<Lead[]> {
  await store.putStudio(aStudio({ id: studioId }), BY);
  const all = leads.map((overrides) => aLead({ studioId, ...overrides }));
  await Promise.all(all.map((lead) => store.createLead(lead, keysFor(lead))));
  return all;
}

const some = (count: number, overrides: Partial<Lead> = {}): Partial<Lead>[] => times(count, () => overrides);

async function exported(caller: GrpcCaller, request: object): Promise<Sent[]> {
  return Array.fromAsync(caller.stream<Sent>(RPC, request));
}

const idsIn = (messages: readonly Sent[]) => messages.flatMap(({ leads }) => leads.map(({ id }) => id));
const listIds = (leads: readonly Lead[]) => leads.map(({ id }) => id);

/** A client without compression, which would change the size of messages. */
function makeClient({ url: baseUrl }: Core) {
  const sessionManager = new CoreSessions(baseUrl, {}, {});
  onTestFinished(() => sessionManager.abort());
  const connected = { baseUrl, httpVersion: '2', sessionManager } as const;
  const transport = createConnectTransport({ ...connected, acceptCompression: [], interceptors: [withToken] });
  return createClient(LeadIntakeService, transport);
}

/** Returns a lead with every field in the JSON form of the contract. */
const inJson = ({ id, studioId, displayName, contact, sourceId, note, stage, createdAt, updatedAt }: Lead) => ({
  id,
  studioId,
  displayName,
  contact: { [contact.type]: contact.value },
  ...(sourceId !== null && { sourceId }),
  ...(note !== null && { note }),
  stage: `LEAD_STAGE_${stage.toUpperCase()}`,
  createTime: createdAt.toISOString().replace('.000Z', 'Z'),
  updateTime: updatedAt.toISOString().replace('.000Z', 'Z'),
});

test('all leads of a studio are exported unchanged and complete, lowest id first', async () => {
  const core = await aCore();
  await studioWith(core, 's0', some(1));
  const texts = Object.values(HARD_TEXTS).map((text) => ({ displayName: text, note: text, sourceId: newId() }));
  const leads = await studioWith(core, 's1', [...texts, ...some(250), { stage: 'trial_booked' }]);
  await studioWith(core, 's2', some(1));
  const client = makeClient(core);

  const messages: ExportLeadsResponse[] = await Array.fromAsync(client.exportLeads({ studioId: 's1' }));

  expect(messages.flatMap((message) => message.leads.map((lead) => toJson(LeadSchema, lead)))).toEqual(
    leads.map(inJson),
  );
  expect(Math.max(...messages.map((message) => message.leads.length))).toBe(MAX_IN_A_MESSAGE);
});

describe('an export', () => {
  // @proves leads-14
  test('an export has all studios in order, and resumes at a later core after each message', async () => {
    const first = await aCore();
    const [b, , a] = [
      await studioWith(first, 'b', some(130)),
      await studioWith(first, 'aa', []),
      await studioWith(first, 'a', some(3)),
    ];
    const messages = await exported(first.caller, {});
    expect(messages.map(({ leads }) => leads.length)).toEqual([3, 100, 30]);
    expect(idsIn(messages)).toEqual(listIds([...a, ...b]));
    expect(await exported(first.caller, { studioId: 'aa' })).toEqual([]);
    await first.stop();
    const later = await aCore(first.path);

    for (const [index, { resumeToken }] of messages.entries()) {
      expect(await exported(later.caller, { resumeToken })).toEqual(messages.slice(index + 1));
    }
  });

  test('an export refuses a truncated resume token and one of another export or list', async () => {
    const core = await aCore();
    await studioWith(core, 's1', some(2));
    await studioWith(core, 's2', some(2));
    const [{ resumeToken } = { resumeToken: '' }] = await exported(core.caller, { studioId: 's1' });
    const list = { studioId: 's1', pageSize: 1 };
    const page = await core.caller.call<{ nextPageToken: string }>('LeadIntakeService/ListLeads', list);

    for (const request of [
      { studioId: 's2', resumeToken },
      { studioId: '', resumeToken },
      { studioId: 's1', resumeToken: resumeToken.slice(0, -1) },
      { studioId: 's1', resumeToken: page.nextPageToken },
    ]) {
      const refusal = await findRefusal(exported(core.caller, request));
      expect(refusal).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['resumeToken'] });
    }
  });

  // @proves leads-36 bounds-120
  test('an export with events equals ListLeadEvents, 10 leads in a message that clients accept', async () => {
    const core = await aCore();
    const leads = await studioWith(core, 's1', some(25, { note: LONG_NOTE }));
    const client = makeClient(core);
    const [moved, longest] = [leads[3] as Lead, leads.slice(10, 20)];
    await client.changeLeadStage({ studioId: 's1', leadId: moved.id, stage: LeadStage.WON, memberId: 'seller' });
    const again = aLead({ studioId: 's1', contact: leads[4]?.contact as Lead['contact'], note: 'again' });
    await core.store.createLead(again, keysFor(again), { keepsEnquiry: true });
    const database = new DatabaseSync(core.path, { timeout: 10_000 });
    const name = 'x'.repeat(64);
    const insert = database.prepare(`
      INSERT INTO audit_events (studio_id, lead_id, action, member_id, caller, time, to_value)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${MAX_AUDIT_EVENTS + 50})
      SELECT 's1', ?, 'lead-updated', '${name}', '${name}', 1700000000000 + i, 'displayName,contact,sourceId,note' FROM n`);
    database.exec('BEGIN');
    for (const { id } of longest) insert.run(id);
    database.exec('COMMIT');
    database.close();

    const messages = await Array.fromAsync(client.exportLeads({ studioId: 's1', includeEvents: true }));
    expect(messages.map((message) => message.leads.length)).toEqual([10, 10, 5]);
    for (const message of messages) {
      expect(message.histories).toHaveLength(message.leads.length);
      expect(toBinary(ExportLeadsResponseSchema, message).length).toBeLessThan(4 * 1024 ** 2);
    }
    const histories = new Map(
      messages.flatMap(({ leads, histories }) => leads.map(({ id }, at) => [id, histories[at]])),
    );
    expect([...histories.keys()]).toEqual(listIds(leads));
    for (const { id: leadId } of leads)
      expect(histories.get(leadId)?.events).toEqual((await client.listLeadEvents({ studioId: 's1', leadId })).events);
    expect(histories.get(moved.id)?.events).toMatchObject([{ memberId: 'seller', what: { case: 'stageMove' } }]);
    expect(histories.get(leads[4]?.id ?? '')?.events).toMatchObject([{ what: { case: 'enquiry' } }]);
    for (const { id } of longest) expect(histories.get(id)?.events).toHaveLength(MAX_AUDIT_EVENTS);
    const [{ resumeToken } = { resumeToken: '' }] = messages;
    const rest = await Array.fromAsync(client.exportLeads({ studioId: 's1', includeEvents: true, resumeToken }));
    expect(rest).toEqual(messages.slice(1));
    const [without] = await Array.fromAsync(client.exportLeads({ studioId: 's1' }));
    expect(without).toMatchObject({ leads: { length: 25 }, histories: [] });
  });

  test('an export is counted, and logged with its number of leads', async () => {
    const core = await aCore();
    await studioWith(core, 's1', some(150));
    await exported(core.caller, { studioId: 's1' });
    await findRefusal(exported(core.caller, { studioId: 's2' }));

    await expect.poll(() => core.lines).toHaveLength(2);
    expect(core.lines).toMatchObject([
      { operation: 'ExportLeads', outcome: 'ok', studioId: 's1', leads: 150 },
      { operation: 'ExportLeads', outcome: 'STUDIO_NOT_FOUND', studioId: 's2', leads: 0 },
    ]);
    const metrics = await core.metrics.registry.metrics();
    expect(metrics).toContain('call_duration_seconds_count{operation="ExportLeads",outcome="ok"} 1');
    expect(metrics).toContain('lead_intake_core_calls_under_way 0');
  });
});

/** Starts an export whose reader has one message, and reads no more until the test calls `rest`. */
async function heldExport(core: Core) {
  const client = makeClient(core);
  const stream = client.exportLeads({ studioId: 's1' })[Symbol.asyncIterator]();
  const first = await stream.next();
  if (first.done) throw new Error('nothing was sent');
  return {
    first: first.value.leads.map(({ id }) => id),
    async rest(): Promise<string[]> {
      const ids: string[] = [];
      for (let next = await stream.next(); !next.done; next = await stream.next()) {
        ids.push(...next.value.leads.map(({ id }) => id));
      }
      return ids;
    },
  };
}

/** Returns the number of pages read once it stays the same while other calls are served. */
async function pagesRead({ caller, walkLeads }: Core): Promise<number> {
  for (let before = -1; walkLeads.mock.calls.length !== before; ) {
    before = walkLeads.mock.calls.length;
    for (const _ of times(100, () => 0))
      await caller.call('LeadIntakeService/ListLeads', { studioId: 's1', pageSize: 1 });
  }
  return walkLeads.mock.calls.length;
}

// @proves bounds-41
test('a reader that pauses delays no one, has few messages buffered, and gets all later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const core = await aCore();
  const leads = await studioWith(core, 's1', some(5000, { note: LONG_NOTE }));
  const held = await heldExport(core);

  // The page that the reader has, the page in flight, and pages that the network buffers.
  expect(await pagesRead(core)).toBeLessThan(10);
  for (const _ of times(60, () => 0)) vi.advanceTimersByTime(MAX_CALL_MS);
  await core.caller.call('LeadIntakeService/ListLeads', { studioId: 's1' });

  expect([...held.first, ...(await held.rest())]).toEqual(listIds(leads));
});

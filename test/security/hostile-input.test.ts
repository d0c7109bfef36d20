import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { LEADS, type LeadJson, PUBLIC_URL, type StudioWithKey } from '../support/service.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import { testSize } from '../tools/test-size.ts';
import { describeRequest, type HostileRequest, hostileRequests, type World } from './hostile-requests.ts';
import { RawClient } from './raw-client.ts';
import { judge, type Verdict } from './response-rules.ts';

/** The number of requests. */
const COUNT = testSize('HOSTILE_COUNT', { usual: 8000, soak: 100_000 });

/** The seed of the requests; the same seed generates the same requests. */
const SEED = Number(process.env.HOSTILE_SEED ?? randomBytes(4).readInt32LE());

/** The number of requests that are generated together, and the number of concurrent requests. */
const BATCH = 500;
const CLIENTS = 64;

const CORE_TOKEN = randomUUID();

/** With this limit, a process that retains something of every request runs out of memory. */
const LITTLE_MEMORY = '--max-old-space-size=128';

const folder = sharedFolder();
let core: RunningProcess;
let gateway: RunningProcess;
let url: string;
let crm: CoreClients;
let world: World;
/** Studios whose leads are all known, and one for requests whose effect is unknown. */
let studios: { readonly known: readonly StudioWithKey[]; readonly scratch: StudioWithKey };

beforeAll(async () => {
  const env = { CORE_TOKEN, NODE_OPTIONS: LITTLE_MEMORY };
  core = start('src/main.ts', { env: { ...env, DATABASE_URL: `sqlite:${join(folder(), 'leads.db')}` } });
  const coreUrl = await readAddress(core);
  gateway = start('gateway/main.ts', { env: { ...env, CORE_URL: coreUrl, PUBLIC_URL, QUOTA_LIMIT: '1000000000' } });
  url = await readAddress(gateway);
  crm = connectToCore(coreUrl, CORE_TOKEN);
  ({ world, studios } = await aWorld());
});
afterAll(async () => {
  crm?.close();
  await gateway?.kill();
  await core?.kill();
});

/** Every lead that a response reported as created, and the count of each kind of response. */
const created = new Map<string, LeadJson>();
const kinds = new Map<string, number>();

const count = (kind: string) => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);

// @proves hostile-1
test('every request gets a response of the contract or a closed connection', {
  timeout: 60_000 + COUNT * 10,
}, async () => {
  const clients = times(CLIENTS, () => new RawClient(url));
  const queue = requests();
  await Promise.all(clients.map((client) => sendAll(client, queue)));
  for (const client of clients) client.close();
});

/** Generates all requests, a batch at a time while earlier ones are in flight. */
function* requests(): Generator<HostileRequest> {
  const arbitrary = hostileRequests(world);
  for (let made = 0; made < COUNT; made += BATCH) {
    yield* fc.sample(arbitrary, { seed: SEED + made, numRuns: Math.min(BATCH, COUNT - made) });
  }
}

/** Sends the rest of a queue. */
async function sendAll(client: RawClient, queue: Iterable<HostileRequest>): Promise<void> {
  for (const request of queue) {
    const exchange = await client.send(request);
    const verdicts = await judge(request, exchange);
    if (typeof verdicts === 'string') {
      const before = exchange.before && `\nAfter ${describeRequest(exchange.before)}`;
      throw new Error(`${verdicts}\n${describeRequest(request)}${before ?? ''}\nRepeat with HOSTILE_SEED=${SEED}`);
    }
    if (verdicts.length === 0) count(`${request.framing}: disconnected`);
    for (const verdict of verdicts) note(verdict);
  }
}

function note({ kind, fields, lead }: Verdict): void {
  count(kind);
  for (const field of fields) count(`${kind}: ${field}`);
  if (lead && kind.startsWith('201')) created.set(lead.id, lead);
}

/** Kinds of responses that occur often in some ten thousand. */
const EXPECTED_KINDS = [
  '200 lead',
  '200 list',
  '200 list with more',
  '201 created',
  '201 replayed',
  ...`Content-Encoding Content-Type Expect Host Idempotency-Key body contact contact.value cursor displayName id
    limit note sourceId`
    .split(/\s+/)
    .map((field) => `400 integration_invalid_request: ${field}`),
  '400 integration_source_invalid',
  '401 integration_key_invalid',
  '402 subscription_suspended',
  '403 integration_issuer_forbidden',
  '403 integration_scope_forbidden',
  '404 integration_lead_not_found',
  '404 route_not_found',
  '405 method_not_allowed',
  '409 integration_idempotency_conflict',
  '409 integration_lead_already_open',
  '431 integration_invalid_request',
];

/** Kinds that occur a few times in some ten thousand, and sometimes not at all. */
const RARE_KINDS = [
  '200 alive',
  '200 ready',
  '400 integration_invalid_request: __proto__',
  '400 integration_invalid_request: contact.type',
  '405 without a body',
  'cut: disconnected',
  'unknown: disconnected',
];

const EXPECTS_ALL_FROM = 200_000;

test('the responses include every kind, so the requests reached every check', () => {
  const expected = [...EXPECTED_KINDS, ...(COUNT < EXPECTS_ALL_FROM ? [] : RARE_KINDS)];
  expect(expected.filter((kind) => !kinds.has(kind))).toEqual([]);
});

// @proves hostile-1
test('exactly the leads reported as created are stored', async () => {
  const there = new Map<string, string>();
  for (const { studioId } of studios.known) await readAll(studioId, there);
  const doubtful = await readAll(studios.scratch.studioId, new Map());
  const answered = [...created.values()].filter(({ id }) => !doubtful.has(id));
  expect(new Map(answered.map(({ id, displayName }) => [id, displayName]))).toEqual(there);
  // Few of the damaged requests still create one.
  if (COUNT >= EXPECTS_ALL_FROM) expect(doubtful.size).toBeGreaterThan(0);
});

/** Lines about the health of a process, or about a core or a disk that a busy machine slowed down, are not faults. */
const NO_FAULT =
  /^\{"level":30,|"reason":"\[deadline_exceeded\] [^"]*","lastsMs":\d+,"msg":"not ready: the core is unavailable"\}$|"msg":"slow command to the database"\}$/;

// @proves hostile-1 bounds-30
test('neither process ended or logged a fault', () => {
  for (const { child, output } of [core, gateway]) {
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    const faults = output()
      .split('\n')
      .filter((line) => line !== '' && !NO_FAULT.test(line));
    expect(faults).toEqual([]);
  }
});

/** Adds every lead of a studio that was created during the test, by id with its name. */
async function readAll(studioId: string, into: Map<string, string>): Promise<Map<string, string>> {
  let pageToken = '';
  do {
    const page = await crm.leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.BASIC });
    for (const { id, displayName } of page.leads) if (displayName !== INITIAL_NAME) into.set(id, displayName);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return into;
}

const INITIAL_NAME = 'From the start';

async function aWorld(): Promise<{ world: World; studios: typeof studios }> {
  const [good, foreign, scratch] = [await arrangeStudio(crm), await arrangeStudio(crm), await arrangeStudio(crm)];
  const more = (scopes: ApiKeyScope[], expiresInMs = 3_600_000) =>
    crm.apiKeys.createApiKey({
      studioId: good.studioId,
      memberId: good.memberId,
      name: 'Another',
      scopes,
      expireTime: timestampFromMs(Date.now() + expiresInMs),
    });
  const suspended = await arrangeStudio(crm);
  await crm.directory.putStudio({ studio: { id: suspended.studioId, status: StudioStatus.SUSPENDED } });
  const demoted = await arrangeStudio(crm);
  await crm.directory.putMember({
    member: { studioId: demoted.studioId, id: demoted.memberId, role: MemberRole.STAFF },
  });
  const revoked = await arrangeStudio(crm);
  await crm.apiKeys.revokeApiKey(revoked);
  const replaced = await arrangeStudio(crm);
  await crm.apiKeys.replaceApiKey(replaced);
  const expired = await more([ApiKeyScope.LEADS_READ], 500);

  const disabled = { studioId: good.studioId, id: randomUUID(), name: 'Old form', enabled: false };
  await crm.directory.putLeadSource({ leadSource: disabled });
  const leadIds = await someLeads(good);
  const foreignLeadIds = await someLeads(foreign);
  const world: World = {
    secrets: {
      good: [good.secret],
      'read-only': [(await more([ApiKeyScope.LEADS_READ])).secret],
      'create-only': [(await more([ApiKeyScope.LEADS_CREATE])).secret],
      suspended: [suspended.secret],
      demoted: [demoted.secret],
      foreign: [foreign.secret],
      dead: [revoked.secret, replaced.secret, expired.secret],
      unknown: times(3, newKeySecret),
    },
    scratchSecret: scratch.secret,
    sourceId: good.sourceId,
    otherSourceIds: [disabled.id, foreign.sourceId, randomUUID()],
    leadIds,
    foreignLeadIds,
    cursors: await someCursors(good),
    foreignCursors: await someCursors(foreign),
  };
  await vi.waitFor(async () => expect((await fetch(url + LEADS, bearer(expired.secret))).status).toBe(401), {
    timeout: 100_000,
  });
  return { world, studios: { known: [good, foreign], scratch } };
}

const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });

async function someLeads({ studioId }: StudioWithKey): Promise<string[]> {
  const ids: string[] = [];
  for (const index of times(30, (each) => each)) {
    const { lead } = await crm.leads.createLead({
      studioId,
      idempotencyKey: randomUUID(),
      displayName: INITIAL_NAME,
      contact: { value: { case: 'email', value: `${index}@example.org` } },
    });
    ids.push(lead?.id ?? '');
  }
  return ids;
}

async function someCursors({ studioId }: StudioWithKey): Promise<string[]> {
  const cursors: string[] = [];
  for (let pageToken = ''; cursors.length < 9; ) {
    pageToken = (await crm.leads.listLeads({ studioId, pageSize: 3, pageToken })).nextPageToken;
    cursors.push(pageToken);
  }
  return cursors;
}

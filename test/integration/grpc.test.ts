import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { DatabaseSync } from 'node:sqlite';
import { json } from 'node:stream/consumers';
import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { uuidFault } from '../../common/rules/field-rules.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { LeadIntakeService, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { ApiKey } from '../../src/domain/api-key.ts';
import { newId } from '../../src/domain/new-id.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { anApiKey, DAY_MS, HARD_TEXTS, plus, times } from '../support/builders.ts';
import { type Authority, anAuthority, type Certificate } from '../support/certificates.ts';
import {
  aCreateLeadRequest,
  CONTRACT_RPCS,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  refusalOf,
  requestBytes,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';

interface WireTime {
  readonly seconds: number;
  readonly nanos: number;
}

interface WireLead {
  readonly id: string;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: { readonly email?: string; readonly phone?: string } | null;
  readonly sourceId?: string;
  readonly note?: string;
  readonly stage: string;
  readonly createTime: WireTime;
  readonly updateTime: WireTime;
}

interface WireKey {
  readonly id: string;
  readonly memberId: string;
  readonly scopes: readonly string[];
  readonly createTime: WireTime;
  readonly expireTime: WireTime;
  readonly revokeTime: WireTime | null;
  readonly secretHint: string;
}

type Issued = { readonly apiKey: WireKey; readonly secret: string };

const timestamp = (moment: Date): WireTime => ({
  seconds: Math.floor(moment.getTime() / 1000),
  nanos: (moment.getTime() % 1000) * 1_000_000,
});
const inDays = (days: number) => timestamp(plus(new Date(), days * DAY_MS));
const millis = ({ seconds, nanos }: WireTime) => seconds * 1000 + nanos / 1_000_000;
const sha256 = (secret: string) => createHash('sha256').update(secret).digest();

let core: TestCore;
let caller: GrpcCaller;
let studioId: string;

// Calls of the one core that most tests share; each test has a separate studio there.
const call: GrpcCaller['call'] = (rpc, request, options) => caller.call(rpc, request, options);
const leads = <Answer>(method: string, request: object) => call<Answer>(`LeadIntakeService/${method}`, request);
const keys = <Answer>(method: string, request: object) => call<Answer>(`ApiKeyService/${method}`, request);
const directory = <Answer>(method: string, request: object) => call<Answer>(`DirectoryService/${method}`, request);

const INVALID = { code: 'INVALID_ARGUMENT', reason: 'INVALID_REQUEST', domain: 'leadintake', metadata: {} };

/** The expected parts of a refusal. */
const refused = (code: string, reason: string, metadata: Record<string, string> = {}) => ({
  code,
  reason,
  domain: 'leadintake',
  metadata,
  message: expect.stringMatching(/./),
});
const STUDIO_NOT_FOUND = refused('NOT_FOUND', 'STUDIO_NOT_FOUND');
const MEMBER_FORBIDDEN = refused('PERMISSION_DENIED', 'MEMBER_FORBIDDEN');
const LEAD_NOT_FOUND = refused('NOT_FOUND', 'LEAD_NOT_FOUND');
const KEY_NOT_FOUND = refused('NOT_FOUND', 'KEY_NOT_FOUND');
const KEY_INVALID = refused('UNAUTHENTICATED', 'KEY_INVALID');
const KEY_LIMIT_REACHED = refused('FAILED_PRECONDITION', 'KEY_LIMIT_REACHED');

beforeAll(async () => {
  core = await startTestCore();
  caller = grpcCaller(`127.0.0.1:${core.port}`);
});
afterAll(async () => {
  caller.close();
  await core.stop();
});
beforeEach(async () => {
  studioId = await aStudio();
});

async function aStudio(overrides: object = {}): Promise<string> {
  const id = `studio-${newId()}`;
  await directory('PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE', ...overrides } });
  return id;
}

async function aSource(overrides: { studioId?: string; enabled?: boolean } = {}): Promise<string> {
  const id = newId();
  await directory('PutLeadSource', { leadSource: { studioId, id, name: 'Form', enabled: true, ...overrides } });
  return id;
}

async function aMember(id: string, role = 'MEMBER_ROLE_OWNER'): Promise<string> {
  await directory('PutMember', { member: { studioId, id, role } });
  return id;
}

const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);

async function aLead(overrides: object = {}): Promise<WireLead> {
  return (await leads<{ lead: WireLead }>('CreateLead', capture(overrides))).lead;
}

const moveTo = async (lead: WireLead, stage: string) =>
  (await leads<{ lead: WireLead }>('ChangeLeadStage', { studioId: lead.studioId, leadId: lead.id, stage })).lead;

describe('CreateLead', () => {
  const create = (request: object) => leads<{ lead: WireLead; replayed: boolean }>('CreateLead', request);

  test('returns the lead as created, without its contact', async () => {
    const sourceId = await aSource();
    const { lead, replayed } = await create(
      capture({ sourceId, note: 'After six.', contact: { phone: '030 1234567' } }),
    );

    expect(replayed).toBe(false);
    expect(lead).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      studioId,
      displayName: 'Ada Lovelace',
      contact: null,
      sourceId,
      note: 'After six.',
      stage: 'LEAD_STAGE_NEW',
      createTime: lead.createTime,
      updateTime: lead.createTime,
    });
    expect(uuidFault(lead.id)).toBeUndefined();
    expect(millis(lead.createTime)).toBe(Number.parseInt(lead.id.slice(0, 8) + lead.id.slice(9, 13), 16));
  });

  test('omits fields that were not given', async () => {
    expect(Object.keys((await create(capture())).lead).sort()).toEqual(
      ['contact', 'createTime', 'displayName', 'id', 'stage', 'studioId', 'updateTime'].sort(),
    );
  });

  test('returns ids in lower case, whatever the case in the request', async () => {
    const sourceId = await aSource();
    const request = capture({ sourceId: sourceId.toUpperCase() });

    const first = await create({ ...request, idempotencyKey: request.idempotencyKey.toUpperCase() });

    expect(first.lead.sourceId).toBe(sourceId);
    expect(await create({ ...request, sourceId })).toEqual({ lead: first.lead, replayed: true });
  });

  test('returns the lead as created to a retry, even when it has changed since', async () => {
    const request = capture({ note: 'same' });
    const { lead } = await create(request);
    await moveTo(lead, 'LEAD_STAGE_WON');

    expect(await create(request)).toEqual({ lead, replayed: true });
  });

  test('creates one lead from 50 identical concurrent requests', async () => {
    const request = capture();

    const answers = await Promise.all(times(50, () => create(request)));

    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(answers.map(({ lead }) => lead.id)).size).toBe(1);
  });

  test('works while the studio is suspended', async () => {
    const suspended = await aStudio({ status: 'STUDIO_STATUS_SUSPENDED' });

    expect(await create(capture({ studioId: suspended }))).toMatchObject({ replayed: false });
  });

  test.each(Object.entries(HARD_TEXTS))('stores text unchanged: %s', async (_, text) => {
    const lead = await aLead({ displayName: text, note: text });

    const { lead: read } = await leads<{ lead: WireLead }>('GetLead', { studioId, leadId: lead.id });

    expect([lead.displayName, lead.note, read.displayName, read.note]).toEqual([text, text, text, text]);
  });

  test('accepts the longest value of every field', async () => {
    const longest = {
      displayName: '🦉'.repeat(160),
      note: '🦉'.repeat(2000),
      contact: { email: `${'🦉'.repeat(242)}@example.org` },
      sourceId: await aSource(),
    };
    const lead = await aLead(longest);

    const { lead: read } = await leads<{ lead: WireLead }>('GetLead', {
      studioId,
      leadId: lead.id,
      view: 'LEAD_VIEW_FULL',
    });
    expect(read).toMatchObject(longest);
  });

  test.each<[field: string, change: object]>([
    ['studioId', { studioId: '' }],
    ['studioId', { studioId: 'a b' }],
    ['idempotencyKey', { idempotencyKey: '' }],
    ['idempotencyKey', { idempotencyKey: '0123456789abcdef0123456789abcdef' }],
    ['displayName', { displayName: '' }],
    ['displayName', { displayName: 'x'.repeat(161) }],
    ['displayName', { displayName: 'a\0b' }],
    ['contact', { contact: undefined }],
    ['contact', { contact: {} }],
    ['contact.email', { contact: { email: '' } }],
    ['contact.email', { contact: { email: 'nobody' } }],
    ['contact.email', { contact: { email: `${'x'.repeat(250)}@b.de` } }],
    ['contact.phone', { contact: { phone: '' } }],
    ['contact.phone', { contact: { phone: '1234' } }],
    ['contact.phone', { contact: { phone: '1'.repeat(65) } }],
    ['contact.phone', { contact: { phone: '12----' } }],
    ['sourceId', { sourceId: '' }],
    ['sourceId', { sourceId: 'form' }],
    ['note', { note: '' }],
    ['note', { note: 'x'.repeat(2001) }],
  ])('refuses a request whose %s is not valid: %o', async (field, change) => {
    expect(await refusalOf(create(capture(change)))).toMatchObject({ ...INVALID, fields: [field] });
  });

  test('reports all faults of a request together', async () => {
    const refusal = await refusalOf(
      create({ studioId: '!', idempotencyKey: 'x', displayName: '', contact: { phone: '1' }, sourceId: 'x', note: '' }),
    );

    expect(refusal).toMatchObject({
      ...INVALID,
      fields: ['studioId', 'idempotencyKey', 'displayName', 'contact.phone', 'sourceId', 'note'],
    });
  });

  test('refuses an unknown studio', async () => {
    expect(await refusalOf(create(capture({ studioId: 'nowhere' })))).toEqual(STUDIO_NOT_FOUND);
  });

  test("refuses a source that is unknown, another studio's or disabled, and leaves the key free", async () => {
    const request = capture();
    for (const sourceId of [newId(), await aSource({ studioId: await aStudio() }), await aSource({ enabled: false })]) {
      expect(await refusalOf(create({ ...request, sourceId }))).toEqual(
        refused('FAILED_PRECONDITION', 'SOURCE_INVALID'),
      );
    }

    expect(await create(request)).toMatchObject({ replayed: false });
  });

  test('refuses other data under a used key, before it checks the source or the contact', async () => {
    const taken = { email: `${newId()}@example.org` };
    await aLead({ contact: taken });
    const request = capture();
    await create(request);

    for (const change of [{ note: 'other' }, { displayName: 'Eda' }, { contact: taken }, { sourceId: newId() }]) {
      expect(await refusalOf(create({ ...request, ...change }))).toEqual(
        refused('ALREADY_EXISTS', 'IDEMPOTENCY_CONFLICT'),
      );
    }
  });

  test('accepts a retry even when its source has been disabled since', async () => {
    const sourceId = await aSource();
    const request = capture({ sourceId });
    const { lead } = await create(request);
    await directory('PutLeadSource', { leadSource: { studioId, id: sourceId, name: 'Form', enabled: false } });

    expect(await create(request)).toEqual({ lead, replayed: true });
    expect(await refusalOf(create({ ...request, note: 'other' }))).toMatchObject({ reason: 'IDEMPOTENCY_CONFLICT' });
  });

  test('refuses a contact that has an open lead, names that lead, and leaves the key free', async () => {
    const contact = { email: `${newId()}@example.org` };
    const first = await aLead({ contact });
    const request = capture({ contact: { email: contact.email.toUpperCase() } });

    expect(await refusalOf(create(request))).toEqual(
      refused('ALREADY_EXISTS', 'LEAD_ALREADY_OPEN', { leadId: first.id }),
    );
    await moveTo(first, 'LEAD_STAGE_LOST');
    expect(await create(request)).toMatchObject({ replayed: false });
  });

  test("compares phone numbers as the studio's region reads them", async () => {
    studioId = await aStudio({ regionCode: 'DE' });
    const first = await aLead({ contact: { phone: '030 / 123 45 67' } });

    expect(await refusalOf(create(capture({ contact: { phone: '+49 (0)30 1234567' } })))).toMatchObject({
      reason: 'LEAD_ALREADY_OPEN',
      metadata: { leadId: first.id },
    });
  });

  test('keeps an e-mail address and a phone number apart', async () => {
    await aLead({ contact: { email: '12345@6' } });

    expect(await create(capture({ contact: { phone: '12345@6' } }))).toMatchObject({ replayed: false });
  });
});

describe('GetLead', () => {
  const get = (request: object) => leads<{ lead: WireLead }>('GetLead', { studioId, ...request });

  test('returns the current lead, with its contact only in the full view', async () => {
    const contact = { phone: '+49 (0)30 1234567' };
    const created = await aLead({ contact });
    const won = await moveTo(created, 'LEAD_STAGE_WON');

    expect((await get({ leadId: created.id, view: 'LEAD_VIEW_FULL' })).lead).toEqual({ ...won, contact });
    expect((await get({ leadId: created.id, view: 'LEAD_VIEW_BASIC' })).lead).toEqual({ ...won, contact: null });
    expect((await get({ leadId: created.id.toUpperCase() })).lead).toEqual({ ...won, contact: null });
  });

  test("an unknown lead and another studio's are refused in the same words", async () => {
    const { id } = await aLead();
    const unknown = await refusalOf(get({ leadId: newId() }));

    expect(unknown).toEqual(LEAD_NOT_FOUND);
    expect(await refusalOf(get({ leadId: id, studioId: await aStudio() }))).toEqual(unknown);
    expect(await refusalOf(get({ leadId: id, studioId: 'nowhere' }))).toEqual(unknown);
  });

  test.each<[field: string, change: object]>([
    ['studioId', { studioId: '' }],
    ['leadId', { leadId: '' }],
    ['leadId', { leadId: '01890a5dac96774bbcceb302099a8057' }],
    ['view', { view: 3 }],
  ])('refuses a request whose %s is not valid: %o', async (field, change) => {
    expect(await refusalOf(get({ leadId: newId(), ...change }))).toMatchObject({ ...INVALID, fields: [field] });
  });

  test('reports all faults of a request together', async () => {
    const { fields } = await refusalOf(get({ studioId: '!', leadId: 'x', view: 99 }));

    expect(fields?.toSorted()).toEqual(['leadId', 'studioId', 'view']);
  });
});

describe('ListLeads', () => {
  type Page = { leads: WireLead[]; nextPageToken: string };
  const list = (request: object = {}) => leads<Page>('ListLeads', { studioId, ...request });

  async function someLeads(count: number): Promise<WireLead[]> {
    const made: WireLead[] = [];
    for (const index of times(count, Number)) made.push(await aLead({ displayName: `Lead ${index}` }));
    return made.toReversed();
  }

  test('returns leads newest first, page by page, each once, and no token after the last', async () => {
    const newestFirst = await someLeads(7);

    const pages: Page[] = [];
    let pageToken = '';
    do {
      const page = await list({ pageSize: 3, pageToken });
      pages.push(page);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');

    expect(pages.map((page) => page.leads.length)).toEqual([3, 3, 1]);
    expect(pages.flatMap((page) => page.leads)).toEqual(newestFirst);
    for (const { nextPageToken } of pages) expect(nextPageToken).toMatch(/^[A-Za-z0-9_-]{0,512}$/);
  });

  test('has no page after a full last page', async () => {
    await someLeads(4);
    const first = await list({ pageSize: 2 });

    expect(await list({ pageSize: 2, pageToken: first.nextPageToken })).toMatchObject({ nextPageToken: '' });
    expect(await list({ pageSize: 4 })).toMatchObject({ nextPageToken: '' });
  });

  test('has stable pages while leads are created', async () => {
    const newestFirst = await someLeads(4);
    const first = await list({ pageSize: 2 });
    await someLeads(3);

    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });

    expect([...first.leads, ...second.leads]).toEqual(newestFirst);
  });

  test('has pages of 25 leads by default, and of at most 100', async () => {
    const newestFirst = await Promise.all(times(101, () => aLead()));
    newestFirst.sort((a, b) => (a.id < b.id ? 1 : -1));

    for (const [pageSize, size] of [
      [undefined, 25],
      [0, 25],
      [1, 1],
      [100, 100],
      [101, 100],
      [2_147_483_647, 100],
    ]) {
      expect((await list({ pageSize })).leads).toEqual(newestFirst.slice(0, size));
    }
  });

  test('has contacts only in the full view', async () => {
    const contact = { email: `${newId()}@example.org` };
    const lead = await aLead({ contact });

    expect((await list({ view: 'LEAD_VIEW_FULL' })).leads).toEqual([{ ...lead, contact }]);
    expect((await list({ view: 'LEAD_VIEW_BASIC' })).leads).toEqual([{ ...lead, contact: null }]);
  });

  test('returns an empty page for a studio without leads, known or not', async () => {
    await aLead();

    expect(await list({ studioId: await aStudio() })).toEqual({ leads: [], nextPageToken: '' });
    expect(await list({ studioId: 'nowhere' })).toEqual({ leads: [], nextPageToken: '' });
  });

  test.each<[field: string, change: object]>([
    ['studioId', { studioId: 'a b' }],
    ['pageSize', { pageSize: -1 }],
    ['pageToken', { pageToken: 'x' }],
    ['pageToken', { pageToken: '=' }],
    ['pageToken', { pageToken: 'x'.repeat(513) }],
    ['view', { view: 3 }],
  ])('refuses a request whose %s is not valid: %o', async (field, change) => {
    expect(await refusalOf(list(change))).toMatchObject({ ...INVALID, fields: [field] });
  });

  test('refuses a token that was truncated, changed or made for another studio', async () => {
    await someLeads(2);
    const { nextPageToken } = await list({ pageSize: 1 });
    const changed = nextPageToken.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));

    for (const request of [
      { pageToken: nextPageToken.slice(1) },
      { pageToken: nextPageToken.slice(0, -1) },
      { pageToken: changed },
      { pageToken: nextPageToken, studioId: await aStudio() },
    ]) {
      expect(await refusalOf(list(request))).toMatchObject({ ...INVALID, fields: ['pageToken'] });
    }
  });

  test('reports all faults of a request together', async () => {
    const { fields } = await refusalOf(list({ studioId: '!', pageSize: -1, pageToken: '!', view: 99 }));

    expect(fields?.toSorted()).toEqual(['pageSize', 'pageToken', 'studioId', 'view']);
  });
});

describe('ChangeLeadStage', () => {
  const change = (request: object) => leads<{ lead: WireLead }>('ChangeLeadStage', { studioId, ...request });

  test('answers the lead after every change, with its contact, and a later update time', {
    tags: ['3.1.moves'],
  }, async () => {
    const contact = { email: `${newId()}@example.org` };
    let before = await aLead({ contact });

    for (const stage of ['CONTACTED', 'TRIAL_BOOKED', 'TRIAL_ATTENDED', 'WON', 'LOST', 'NEW']) {
      const { lead } = await change({ leadId: before.id.toUpperCase(), stage: `LEAD_STAGE_${stage}` });

      expect(lead).toEqual({ ...before, contact, stage: `LEAD_STAGE_${stage}`, updateTime: lead.updateTime });
      expect(millis(lead.updateTime)).toBeGreaterThan(millis(before.updateTime));
      before = lead;
    }
  });

  test('to the current stage, returns the lead and changes nothing', { tags: ['3.1.moves'] }, async () => {
    const contact = { email: `${newId()}@example.org` };
    const lead = await aLead({ contact });

    expect(await change({ leadId: lead.id, stage: 'LEAD_STAGE_NEW' })).toEqual({ lead: { ...lead, contact } });
  });

  test("an unknown lead and another studio's are refused in the same words", async () => {
    const { id } = await aLead();
    const stage = 'LEAD_STAGE_WON';
    const unknown = await refusalOf(change({ leadId: newId(), stage }));

    expect(unknown).toEqual(LEAD_NOT_FOUND);
    expect(await refusalOf(change({ leadId: id, studioId: await aStudio(), stage }))).toEqual(unknown);
  });

  test('refuses to reopen while the contact has another open lead, and names that lead', {
    tags: ['3.1.moves'],
  }, async () => {
    const contact = { email: `${newId()}@example.org` };
    const first = await moveTo(await aLead({ contact }), 'LEAD_STAGE_LOST');
    const second = await aLead({ contact });

    expect(await refusalOf(change({ leadId: first.id, stage: 'LEAD_STAGE_NEW' }))).toEqual(
      refused('ALREADY_EXISTS', 'LEAD_ALREADY_OPEN', { leadId: second.id }),
    );
    expect(await leads('GetLead', { studioId, leadId: first.id, view: 'LEAD_VIEW_FULL' })).toEqual({ lead: first });
  });

  test.each<[field: string, change: object]>([
    ['studioId', { studioId: '' }],
    ['leadId', { leadId: 'x' }],
    ['stage', { stage: 'LEAD_STAGE_UNSPECIFIED' }],
    ['stage', { stage: 7 }],
  ])('refuses a request whose %s is not valid: %o', async (field, part) => {
    expect(await refusalOf(change({ leadId: newId(), stage: 'LEAD_STAGE_WON', ...part }))).toMatchObject({
      ...INVALID,
      fields: [field],
    });
  });

  test('reports all faults of a request together', async () => {
    expect(await refusalOf(change({ studioId: '', leadId: '', stage: 0 }))).toMatchObject({
      ...INVALID,
      fields: ['studioId', 'leadId', 'stage'],
    });
  });
});

describe('API keys', () => {
  const memberId = 'owner';
  const BOTH = ['API_KEY_SCOPE_LEADS_READ', 'API_KEY_SCOPE_LEADS_CREATE'];
  const order = (overrides: object = {}) => ({
    studioId,
    memberId,
    name: 'Website',
    scopes: BOTH,
    expireTime: inDays(30),
    ...overrides,
  });
  const issue = (overrides: object = {}) => keys<Issued>('CreateApiKey', order(overrides));
  const on = (key: WireKey, overrides: object = {}) => ({ studioId, memberId, apiKeyId: key.id, ...overrides });
  const list = async (overrides: object = {}) =>
    (await keys<{ apiKeys: WireKey[] }>('ListApiKeys', { studioId, memberId, ...overrides })).apiKeys;
  const replace = (key: WireKey, overrides: object = {}) => keys<Issued>('ReplaceApiKey', on(key, overrides));
  const revoke = async (key: WireKey, overrides: object = {}) =>
    (await keys<{ apiKey: WireKey }>('RevokeApiKey', on(key, overrides))).apiKey;
  const authenticate = (secret: string) => keys('AuthenticateApiKey', { secretSha256: sha256(secret) });

  /** A key after its expiry, without waiting for it. */
  async function anExpiredKey(): Promise<ApiKey> {
    const then = plus(new Date(), -DAY_MS);
    const key = anApiKey({ studioId, memberId, expiresAt: plus(then, 1000) });
    const store = openSqliteStore(core.path);
    try {
      expect(await store.createApiKey(key, then)).toBe(true);
    } finally {
      await store.close();
    }
    return key;
  }

  beforeEach(() => aMember(memberId));

  describe('CreateApiKey', () => {
    test('returns the record and the secret, which authenticates', async () => {
      const expireTime = inDays(366 - 1 / 24);
      const { apiKey, secret } = await issue({ expireTime, scopes: [...BOTH, ...BOTH] });

      expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);
      expect(apiKey).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        studioId,
        memberId,
        name: 'Website',
        scopes: expect.toSatisfy((scopes: string[]) => scopes.toSorted().join() === BOTH.toSorted().join()),
        createTime: expect.objectContaining({ seconds: expect.any(Number) }),
        expireTime,
        revokeTime: null,
        lastUsedTime: null,
        secretHint: secret.slice(-4),
      });
      expect(await authenticate(secret)).toEqual({ studioId, apiKeyId: apiKey.id, scopes: apiKey.scopes });
    });

    test('is for owners and admins of the studio only', async () => {
      await aMember('admin', 'MEMBER_ROLE_ADMIN');
      await aMember('staff', 'MEMBER_ROLE_STAFF');

      expect(await issue({ memberId: 'admin' })).toMatchObject({ apiKey: { memberId: 'admin' } });
      expect(await refusalOf(issue({ memberId: 'staff' }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(issue({ memberId: 'stranger' }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(issue({ studioId: await aStudio() }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(issue({ studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
    });

    test('issues 20 keys for 30 concurrent requests', async () => {
      const outcomes = await Promise.allSettled(times(30, () => issue()));

      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
      expect(await refusalOf(issue())).toEqual(KEY_LIMIT_REACHED);
      await revoke((await list())[0] as WireKey);
      await issue();
    });

    test.each<[field: string, change: () => object]>([
      ['studioId', () => ({ studioId: '' })],
      ['memberId', () => ({ memberId: 'a b' })],
      ['name', () => ({ name: '' })],
      ['name', () => ({ name: 'x'.repeat(161) })],
      ['scopes', () => ({ scopes: [] })],
      ['scopes', () => ({ scopes: [0] })],
      ['scopes', () => ({ scopes: [1, 3] })],
      ['expireTime', () => ({ expireTime: undefined })],
      ['expireTime', () => ({ expireTime: inDays(-1) })],
      ['expireTime', () => ({ expireTime: inDays(367) })],
      ['expireTime', () => ({ expireTime: { seconds: 253_402_300_800_000 } })],
    ])('refuses a request whose %s is not valid', async (field, change) => {
      expect(await refusalOf(issue(change()))).toMatchObject({ ...INVALID, fields: [field] });
    });

    test('reports all faults of a request together', async () => {
      expect(await refusalOf(keys('CreateApiKey', {}))).toMatchObject({
        ...INVALID,
        fields: ['studioId', 'memberId', 'name', 'scopes', 'expireTime'],
      });
    });
  });

  describe('ListApiKeys', () => {
    test('returns all keys, newest first, including revoked and expired ones, without secrets', async () => {
      const expired = await anExpiredKey();
      const first = await issue();
      const second = await issue();
      const revoked = await revoke(first.apiKey);

      const listed = await list();

      expect(listed).toMatchObject([second.apiKey, revoked, { id: expired.id }]);
      expect(JSON.stringify(listed)).not.toContain(second.secret.slice(4, 20));
    });

    test('is refused as the other calls are', async () => {
      await aMember('staff', 'MEMBER_ROLE_STAFF');

      expect(await refusalOf(list({ memberId: 'staff' }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(list({ studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
      expect(await refusalOf(list({ studioId: '', memberId: '' }))).toMatchObject({
        ...INVALID,
        fields: ['studioId', 'memberId'],
      });
    });
  });

  describe('ReplaceApiKey', () => {
    test('changes the secret immediately, and nothing else', { tags: ['3.2.renewed'] }, async () => {
      const { apiKey, secret } = await issue({ scopes: ['API_KEY_SCOPE_LEADS_READ'] });
      await aMember('admin', 'MEMBER_ROLE_ADMIN');

      const replaced = await replace(apiKey, { memberId: 'admin', apiKeyId: apiKey.id.toUpperCase() });

      expect(replaced.apiKey).toEqual({ ...apiKey, memberId: 'admin', secretHint: replaced.secret.slice(-4) });
      expect(await refusalOf(authenticate(secret))).toEqual(KEY_INVALID);
      expect(await authenticate(replaced.secret)).toMatchObject({ apiKeyId: apiKey.id });
    });

    test('changes the expiry if one is given, also of an expired key', {
      tags: ['3.2.renewed'],
    }, async () => {
      const expireTime = inDays(60);
      const { apiKey } = await issue();
      const { id } = await anExpiredKey();

      expect(await replace(apiKey, { expireTime })).toMatchObject({ apiKey: { expireTime } });
      const revived = await keys<Issued>('ReplaceApiKey', { studioId, memberId, apiKeyId: id, expireTime });
      expect(await authenticate(revived.secret)).toMatchObject({ apiKeyId: id });
    });

    test('is refused for a key that is unknown, another studio’s, revoked or expired', {
      tags: ['3.2.renewed', '3.2.revoked'],
    }, async () => {
      const { apiKey } = await issue();
      const other = await aStudio();
      await directory('PutMember', { member: { studioId: other, id: memberId, role: 'MEMBER_ROLE_OWNER' } });
      const expired = await anExpiredKey();

      expect(await refusalOf(replace(apiKey, { apiKeyId: newId() }))).toEqual(KEY_NOT_FOUND);
      expect(await refusalOf(replace(apiKey, { studioId: other }))).toEqual(KEY_NOT_FOUND);
      expect(await refusalOf(replace(apiKey, { apiKeyId: expired.id }))).toMatchObject({
        code: 'FAILED_PRECONDITION',
        reason: 'KEY_EXPIRED',
      });
      await revoke(apiKey);
      expect(await refusalOf(replace(apiKey, { expireTime: inDays(1) }))).toEqual(
        refused('FAILED_PRECONDITION', 'KEY_REVOKED'),
      );
    });

    test('does not revive an expired key as the 21st', { tags: ['8.api-keys'] }, async () => {
      const { id } = await anExpiredKey();
      for (const _ of times(20, Number)) await issue();

      expect(
        await refusalOf(keys('ReplaceApiKey', { studioId, memberId, apiKeyId: id, expireTime: inDays(1) })),
      ).toEqual(KEY_LIMIT_REACHED);
    });

    test('is refused as the other calls are', async () => {
      const { apiKey, secret } = await issue();
      await aMember('staff', 'MEMBER_ROLE_STAFF');

      expect(await refusalOf(replace(apiKey, { memberId: 'staff' }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(replace(apiKey, { studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
      expect(
        await refusalOf(
          replace(apiKey, { studioId: '', memberId: '', apiKeyId: '', expireTime: timestamp(new Date(0)) }),
        ),
      ).toMatchObject({ ...INVALID, fields: ['studioId', 'memberId', 'apiKeyId', 'expireTime'] });
      expect(await authenticate(secret)).toMatchObject({ apiKeyId: apiKey.id });
    });
  });

  describe('RevokeApiKey', () => {
    test('disables a key permanently, and returns the same the second time', async () => {
      const { apiKey, secret } = await issue();

      const revoked = await revoke(apiKey);

      expect(revoked).toEqual({ ...apiKey, revokeTime: revoked.revokeTime });
      expect(revoked.revokeTime).not.toBeNull();
      expect(await refusalOf(authenticate(secret))).toEqual(KEY_INVALID);
      expect(await revoke(apiKey, { apiKeyId: apiKey.id.toUpperCase() })).toEqual(revoked);
      expect(await list()).toEqual([revoked]);
    });

    test('is refused for a key that is unknown or another studio’s, and as the other calls are', async () => {
      const { apiKey, secret } = await issue();
      const other = await aStudio();
      await directory('PutMember', { member: { studioId: other, id: memberId, role: 'MEMBER_ROLE_OWNER' } });
      await aMember('staff', 'MEMBER_ROLE_STAFF');

      expect(await refusalOf(revoke(apiKey, { apiKeyId: newId() }))).toEqual(KEY_NOT_FOUND);
      expect(await refusalOf(revoke(apiKey, { studioId: other }))).toEqual(KEY_NOT_FOUND);
      expect(await refusalOf(revoke(apiKey, { memberId: 'staff' }))).toEqual(MEMBER_FORBIDDEN);
      expect(await refusalOf(revoke(apiKey, { studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
      expect(await refusalOf(revoke(apiKey, { studioId: '', memberId: '', apiKeyId: 'x' }))).toMatchObject({
        ...INVALID,
        fields: ['studioId', 'memberId', 'apiKeyId'],
      });
      expect(await authenticate(secret)).toMatchObject({ apiKeyId: apiKey.id });
    });
  });

  describe('AuthenticateApiKey', () => {
    test.each([[['API_KEY_SCOPE_LEADS_READ']], [['API_KEY_SCOPE_LEADS_CREATE']]])(
      'returns the studio and exactly the scopes of the key: %s',
      async (scopes) => {
        const { apiKey, secret } = await issue({ scopes });

        expect(await authenticate(secret)).toEqual({ studioId, apiKeyId: apiKey.id, scopes });
      },
    );

    test('refuses a secret that is unknown or expired', async () => {
      const { secretSha256 } = await anExpiredKey();

      expect(await refusalOf(authenticate('lik_unknown'))).toEqual(KEY_INVALID);
      expect(await refusalOf(keys('AuthenticateApiKey', { secretSha256 }))).toEqual(KEY_INVALID);
    });

    test('checks the studio and the issuer in each call', async () => {
      const { secret } = await issue();
      const status = (word: string) => ({ studio: { id: studioId, status: `STUDIO_STATUS_${word}` } });
      const issuerForbidden = refused('PERMISSION_DENIED', 'ISSUER_FORBIDDEN');

      await directory('PutStudio', status('SUSPENDED'));
      expect(await refusalOf(authenticate(secret))).toEqual(refused('PERMISSION_DENIED', 'STUDIO_SUSPENDED'));
      await directory('PutStudio', status('ACTIVE'));
      await authenticate(secret);
      await aMember(memberId, 'MEMBER_ROLE_STAFF');
      expect(await refusalOf(authenticate(secret))).toEqual(issuerForbidden);
      await aMember(memberId, 'MEMBER_ROLE_ADMIN');
      await authenticate(secret);
      await directory('RemoveMember', { studioId, memberId });
      expect(await refusalOf(authenticate(secret))).toEqual(issuerForbidden);
    });

    test('reports first an invalid key, then a suspended studio, then a forbidden issuer', async () => {
      const dead = await issue();
      const { secret } = await issue();
      await revoke(dead.apiKey);
      await directory('PutStudio', { studio: { id: studioId, status: 'STUDIO_STATUS_SUSPENDED' } });
      await directory('RemoveMember', { studioId, memberId });

      expect(await refusalOf(authenticate(dead.secret))).toMatchObject({ reason: 'KEY_INVALID' });
      expect(await refusalOf(authenticate(secret))).toMatchObject({ reason: 'STUDIO_SUSPENDED' });
    });

    test('accepts a key of a removed issuer again once another member replaces it', async () => {
      const { apiKey } = await issue();
      await directory('RemoveMember', { studioId, memberId });
      await aMember('admin', 'MEMBER_ROLE_ADMIN');

      const { secret } = await replace(apiKey, { memberId: 'admin' });

      expect(await authenticate(secret)).toMatchObject({ apiKeyId: apiKey.id });
    });

    test.each([0, 31, 33])('refuses a hash of %i bytes', async (length) => {
      expect(await refusalOf(keys('AuthenticateApiKey', { secretSha256: Buffer.alloc(length) }))).toMatchObject({
        ...INVALID,
        fields: ['secretSha256'],
      });
    });
  });
});

describe('the directory', () => {
  test('PutStudio and GetStudio: the record as it was put last', async () => {
    for (const studio of [
      { id: studioId, status: 'STUDIO_STATUS_SUSPENDED', regionCode: 'DE' },
      { id: studioId, status: 'STUDIO_STATUS_ACTIVE', regionCode: 'FR' },
    ]) {
      expect(await directory('PutStudio', { studio })).toEqual({ studio });
      expect(await directory('GetStudio', { studioId })).toEqual({ studio });
    }
  });

  test('PutStudio keeps missing fields, and clears those that the mask names', async () => {
    await directory('PutStudio', { studio: { id: studioId, status: 'STUDIO_STATUS_SUSPENDED', regionCode: 'DE' } });
    const put = (studio: object, mask?: string[]) =>
      directory('PutStudio', { studio: { id: studioId, ...studio }, ...(mask && { updateMask: { paths: mask } }) });
    const both = { id: studioId, status: 'STUDIO_STATUS_SUSPENDED', regionCode: 'DE' };

    expect(await put({ status: 'STUDIO_STATUS_ACTIVE' })).toEqual({
      studio: { ...both, status: 'STUDIO_STATUS_ACTIVE' },
    });
    expect(await put({ status: 'STUDIO_STATUS_SUSPENDED' })).toEqual({ studio: both });
    expect(await put({ regionCode: 'DE' })).toEqual({ studio: both });
    expect(await put({})).toEqual({ studio: both });
    expect(await put({ status: 'STUDIO_STATUS_ACTIVE', regionCode: 'FR' }, ['region_code'])).toEqual({
      studio: { ...both, regionCode: 'FR' },
    });
    expect(await put({}, ['region_code'])).toEqual({ studio: { id: studioId, status: 'STUDIO_STATUS_SUSPENDED' } });
    expect(await refusalOf(put({}, ['status']))).toMatchObject({ ...INVALID, fields: ['studio.status'] });
    expect(await refusalOf(put({}, ['members']))).toMatchObject({ ...INVALID, fields: ['updateMask'] });
  });

  test.each<[fields: string[], studio: object | undefined]>([
    [['studio.id'], { id: 'a b', status: 1 }],
    [['studio.status'], { id: 'a' }],
    [['studio.status'], { id: 'a', status: 3 }],
    [['studio.regionCode'], { id: 'a', status: 1, regionCode: 'de' }],
    [['studio.regionCode'], { id: 'a', status: 1, regionCode: '' }],
    [['studio.regionCode'], { id: 'a', status: 1, regionCode: 'constructor' }],
    [['studio.quotaLimit'], { id: 'a', status: 1, quotaLimit: 0 }],
    [['studio.id', 'studio.status', 'studio.regionCode'], { regionCode: 'XX' }],
    [['studio.id', 'studio.status'], undefined],
  ])('PutStudio is refused for %o: %o', async (fields, studio) => {
    expect(await refusalOf(directory('PutStudio', { studio }))).toMatchObject({ ...INVALID, fields });
  });

  test('GetStudio is refused for an unknown studio and an id that cannot be one', async () => {
    expect(await refusalOf(directory('GetStudio', { studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
    expect(await refusalOf(directory('GetStudio', {}))).toMatchObject({ ...INVALID, fields: ['studioId'] });
  });

  test('RemoveMember of a missing member is not an error', async () => {
    const member = { studioId, id: 'somebody', role: 'MEMBER_ROLE_STAFF' };
    const removal = { studioId, memberId: 'somebody' };

    expect(await directory('PutMember', { member })).toEqual({ member });
    expect(await directory('PutMember', { member })).toEqual({ member });
    expect(await directory('RemoveMember', removal)).toEqual({ member });
    expect(await directory('RemoveMember', removal)).toEqual({ member: null });
  });

  test.each<[fields: string[], member: object | undefined]>([
    [['member.studioId'], { id: 'a', role: 1 }],
    [['member.id'], { studioId: 'a', id: '', role: 1 }],
    [['member.role'], { studioId: 'a', id: 'a', role: 0 }],
    [['member.role'], { studioId: 'a', id: 'a', role: 4 }],
    [['member.studioId', 'member.id', 'member.role'], undefined],
  ])('PutMember is refused for %o: %o', async (fields, member) => {
    expect(await refusalOf(directory('PutMember', { member }))).toMatchObject({ ...INVALID, fields });
  });

  test('PutMember and RemoveMember are refused for an unknown studio', async () => {
    const member = { studioId: 'nowhere', id: 'a', role: 1 };

    expect(await refusalOf(directory('PutMember', { member }))).toEqual(STUDIO_NOT_FOUND);
    expect(await refusalOf(directory('RemoveMember', { studioId: 'nowhere', memberId: 'a' }))).toEqual(
      STUDIO_NOT_FOUND,
    );
  });

  test('RemoveMember reports all faults of a request together', async () => {
    const { fields, ...refusal } = await refusalOf(directory('RemoveMember', { studioId: '!', memberId: '' }));

    expect(refusal).toMatchObject(INVALID);
    expect(fields?.toSorted()).toEqual(['memberId', 'studioId']);
  });

  test('PutLeadSource and ListLeadSources: each source as it was put last, by id', async () => {
    const [a, b] = times(2, () => ({ studioId, id: newId(), name: 'Form', enabled: true }));
    await directory('PutLeadSource', { leadSource: b });
    await directory('PutLeadSource', { leadSource: a });
    const changed = { ...a, name: 'Old form', enabled: false };

    expect(await directory('PutLeadSource', { leadSource: { ...changed, id: a?.id.toUpperCase() } })).toEqual({
      leadSource: changed,
    });
    expect(await directory('ListLeadSources', { studioId })).toEqual({ leadSources: [changed, b], nextPageToken: '' });
    expect(await directory('ListLeadSources', { studioId: await aStudio() })).toEqual({
      leadSources: [],
      nextPageToken: '',
    });
  });

  test('RemoveLeadSource returns the source, then none, and no new lead may name it', async () => {
    const sourceId = await aSource();
    const removal = { studioId, leadSourceId: sourceId.toUpperCase() };
    const lead = await aLead({ sourceId });

    expect(await directory('RemoveLeadSource', removal)).toMatchObject({ leadSource: { id: sourceId, name: 'Form' } });
    expect(await directory('RemoveLeadSource', removal)).toEqual({ leadSource: null });
    expect(await refusalOf(leads('CreateLead', capture({ sourceId })))).toMatchObject({ reason: 'SOURCE_INVALID' });
    expect(await leads('GetLead', { studioId, leadId: lead.id })).toMatchObject({ lead: { sourceId } });
    const wrong = { studioId: '!', leadSourceId: 'form' };
    const { fields } = await refusalOf(directory('RemoveLeadSource', wrong));
    expect(fields?.toSorted()).toEqual(['leadSourceId', 'studioId']);
  });

  describe('a studio with more members and sources, of the longest names, than it may have', () => {
    // An earlier release had no bound; no message may exceed the default limit of gRPC clients, 4 MB.
    const FIRST_PAGE = 1000;
    const there = times(7000, newId);
    let full: string;

    beforeAll(async () => {
      full = await aStudio();
      const database = new DatabaseSync(core.path);
      const insert = database.prepare('INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (?, ?, ?, 1)');
      const insertMember = database.prepare("INSERT INTO members (studio_id, id, role) VALUES (?, ?, 'staff')");
      database.exec('BEGIN IMMEDIATE');
      for (const id of there) insert.run(full, id, '🦉'.repeat(160));
      for (const index of times(1000, (each) => each)) insertMember.run(full, `member-${index}`);
      database.exec('COMMIT');
      database.close();
    });

    interface Page {
      leadSources: { id: string }[];
      nextPageToken: string;
    }
    const page = (request: object) => directory<Page>('ListLeadSources', { studioId: full, ...request });
    const ids = ({ leadSources }: Page) => leadSources.map(({ id }) => id);

    test('accepts no more of either, but changes of existing ones', async () => {
      const limit = refused('FAILED_PRECONDITION', 'DIRECTORY_LIMIT_REACHED');
      const leadSource = { studioId: full, id: newId(), name: 'Form', enabled: true };
      const member = { studioId: full, id: 'another', role: 'MEMBER_ROLE_STAFF' };

      expect(await refusalOf(directory('PutLeadSource', { leadSource }))).toEqual(limit);
      expect(await refusalOf(directory('PutMember', { member }))).toEqual(limit);
      await directory('PutMember', { member: { ...member, id: 'member-1' } });
      await directory('PutStudio', { studio: { id: full, status: 'STUDIO_STATUS_SUSPENDED' } });
    });

    test('is listed to the end, page by page, with any page size', async () => {
      for (const pageSize of [0, 1, 999, 1000, 5000]) {
        const first = await page({ pageSize });
        expect(ids(first)).toEqual(there.slice(0, Math.min(pageSize || FIRST_PAGE, FIRST_PAGE)));
      }
      const all: string[] = [];
      let pageToken = '';
      do {
        const next = await page({ pageToken });
        all.push(...ids(next));
        pageToken = next.nextPageToken;
      } while (pageToken !== '');
      expect(all).toEqual(there);
    });

    test('refuses a negative size, and a foreign token', async () => {
      const { nextPageToken } = await page({ pageSize: 1 });
      const refusals = [{ pageSize: -1 }, { pageToken: `${nextPageToken}A` }, { studioId, pageToken: nextPageToken }];
      const faults = await Promise.all(refusals.map(async (request) => (await refusalOf(page(request))).fields));

      expect(faults).toEqual([['pageSize'], ['pageToken'], ['pageToken']]);
    });
  });

  test.each<[fields: string[], leadSource: object | undefined]>([
    [['leadSource.studioId'], { studioId: '', id: newId(), name: 'x' }],
    [['leadSource.id'], { studioId: 'a', id: 'form', name: 'x' }],
    [['leadSource.name'], { studioId: 'a', id: newId(), name: 'x'.repeat(161) }],
    [['leadSource.studioId', 'leadSource.id', 'leadSource.name'], undefined],
  ])('PutLeadSource is refused for %o', async (fields, leadSource) => {
    expect(await refusalOf(directory('PutLeadSource', { leadSource }))).toMatchObject({ ...INVALID, fields });
  });

  test('PutLeadSource and ListLeadSources are refused for an unknown studio', async () => {
    const leadSource = { studioId: 'nowhere', id: newId(), name: 'x' };

    expect(await refusalOf(directory('PutLeadSource', { leadSource }))).toEqual(STUDIO_NOT_FOUND);
    expect(await refusalOf(directory('ListLeadSources', { studioId: 'nowhere' }))).toEqual(STUDIO_NOT_FOUND);
    expect(await refusalOf(directory('ListLeadSources', {}))).toMatchObject({ ...INVALID, fields: ['studioId'] });
  });
});

describe("the core's token", () => {
  const unauthenticated = refused('UNAUTHENTICATED', 'CALLER_UNAUTHENTICATED');

  test('the contract has RPCs to try', () => expect(CONTRACT_RPCS).toHaveLength(34));

  /** Faulty requests of the methods for which an empty request is valid; `none is` where no request is faulty. */
  const FAULTY_REQUESTS: Readonly<Record<string, object | 'none is'>> = {
    'DirectoryService/ListStudios': { pageSize: -1 },
    'LeadIntakeService/ExportLeads': { studioId: 'no id' },
    'LeadIntakeService/PullLeadChanges': { max: -1 },
    'LeadIntakeService/AcknowledgeLeadChanges': { acknowledgements: [{}] },
    'LeadIntakeService/WatchLeadChanges': 'none is',
  };

  test.each(CONTRACT_RPCS)('is required to call %s', async (rpc) => {
    const wrong = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      CORE_TOKEN,
      `Basic ${CORE_TOKEN}`,
      `Bearer ${CORE_TOKEN}x`,
      `Bearer ${CORE_TOKEN.slice(0, -1)}`,
      `Bearer ${CORE_TOKEN.toUpperCase()}`,
      `Bearer ${CORE_TOKEN}, Bearer ${CORE_TOKEN}`,
    ];
    for (const authorization of wrong) {
      expect(await refusalOf(call(rpc, {}, { authorization }))).toEqual(unauthenticated);
    }
    // The same call with the token is checked against its own rules.
    const faulty = FAULTY_REQUESTS[rpc] ?? {};
    if (faulty !== 'none is') expect(await refusalOf(call(rpc, faulty))).toMatchObject(INVALID);
  });

  test('is not required by a core without one, on its own machine', async () => {
    const open = await startTestCore({ CORE_TOKEN: '' });
    const stranger = grpcCaller(`127.0.0.1:${open.port}`);
    onTestFinished(async () => {
      stranger.close();
      await open.stop();
    });

    expect(await stranger.call('LeadIntakeService/ListLeads', { studioId }, { authorization: undefined })).toEqual({
      leads: [],
      nextPageToken: '',
    });
  });
});

describe('the health check', () => {
  const check = (service: string) => call('grpc.health.v1.Health/Check', { service }, { authorization: undefined });

  test.each(['', 'leadintake.v1.LeadIntakeService', 'leadintake.v1.ApiKeyService', 'leadintake.v1.DirectoryService'])(
    'reports %j as serving, without the token',
    async (service) => expect(await check(service)).toEqual({ status: 'SERVING' }),
  );

  test.each(['leadintake.v1.Other', 'LeadIntakeService', 'x'])('reports %s as unknown', async (service) => {
    expect(await refusalOf(check(service))).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('what no client of the contract sends', () => {
  const request = () => requestBytes('LeadIntakeService/CreateLead', capture());
  const send = (bytes: Uint8Array) => call<{ lead: WireLead }>('LeadIntakeService/CreateLead', {}, { bytes });
  const stillServed = async () => expect(await aLead()).toMatchObject({ studioId });

  test.each<[what: string, bytes: () => Uint8Array]>([
    ['bytes that are no message', () => Buffer.from('ffffffffffff', 'hex')],
    ['a message that ends in the middle', () => request().subarray(0, -3)],
    ['a length beyond the end', () => Buffer.from('0affffffff0f61', 'hex')],
    ['a negative length', () => Buffer.from('0affffffffffffffffff01', 'hex')],
    ['a group that does not end', () => Buffer.from('0b', 'hex')],
    ['a field number of zero', () => Buffer.from('0000', 'hex')],
    ['text that is not UTF-8', () => Buffer.concat([request(), Buffer.from('1a0361ff62', 'hex')])],
    ['half of a surrogate pair in UTF-8', () => Buffer.concat([request(), Buffer.from('1a03eda080', 'hex')])],
  ])('%s: gets an error, and the server keeps serving', async (_, bytes) => {
    const { code } = await refusalOf(send(bytes()));

    expect(['INTERNAL', 'INVALID_ARGUMENT']).toContain(code);
    await stillServed();
    expect((await leads<{ leads: unknown[] }>('ListLeads', { studioId })).leads).toHaveLength(1);
  });

  test('fields of a later release are ignored', async () => {
    const later = Buffer.from('fa3f0568656c6c6f', 'hex');

    expect(await send(Buffer.concat([request(), later]))).toMatchObject({ lead: { studioId } });
  });

  test('an RPC that does not exist is unimplemented', async () => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const headers = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/leadintake.v1.LeadIntakeService/DropLeads',
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: `Bearer ${CORE_TOKEN}`,
      });
      stream.on('response', resolve).on('error', reject).end(Buffer.alloc(5));
    });

    // A gRPC client treats both as UNIMPLEMENTED.
    expect([headers[':status'], headers['grpc-status']]).toContainEqual(headers['grpc-status'] ? '12' : 404);
    await stillServed();
  });

  test('a deadline beyond the longest is refused, and the longest is not', async () => {
    const list = (ms: number) => call('LeadIntakeService/ListLeads', { studioId }, { deadline: Date.now() + ms });

    expect(await refusalOf(list(3_600_000))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await list(60_000)).toMatchObject({ leads: [] });
  });

  test('a message that is too large after decompression is refused, and the connection stays usable', async () => {
    const packing = grpcCaller(`127.0.0.1:${core.port}`, undefined, { 'grpc.default_compression_algorithm': 2 });
    onTestFinished(() => packing.close());
    const rpc = 'LeadIntakeService/CreateLead';

    for (const length of [100_000, 10_000_000]) {
      expect(await refusalOf(packing.call(rpc, capture({ note: 'x'.repeat(length) })))).toMatchObject({
        code: 'RESOURCE_EXHAUSTED',
      });
    }
    expect(await packing.call(rpc, capture({ note: 'x'.repeat(2000) }))).toMatchObject({ replayed: false });
  });

  test('messages that are too large are refused, the connection stays usable, and the core can stop', async () => {
    const other = await startTestCore();
    const large = grpcCaller(`127.0.0.1:${other.port}`);
    onTestFinished(() => large.close());
    const rpc = 'LeadIntakeService/CreateLead';

    for (const length of [64 * 1024, 70_000, 1_000_000, 3_000_000]) {
      expect(await refusalOf(large.call(rpc, capture({ note: 'x'.repeat(length) })))).toMatchObject({
        code: 'RESOURCE_EXHAUSTED',
      });
    }
    expect(await refusalOf(large.call(rpc, capture()))).toMatchObject({ reason: 'STUDIO_NOT_FOUND' });
    await other.stop();
  });

  test('a request that never ends does not delay a stop', async () => {
    const other = await startTestCore();
    const session = connect(other.url);
    session.on('error', () => {});
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': '/leadintake.v1.LeadIntakeService/CreateLead',
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${CORE_TOKEN}`,
    });
    stream.on('error', () => {});
    stream.write(Buffer.of(0, 0, 0));
    // The core reads a connection in order: when it has answered the ping, the request has begun.
    await once(session, 'connect');
    await new Promise((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve(undefined))));

    await other.stop();
  });
});

describe('starting and stopping', () => {
  test('a core stops while its callers keep their idle connections', async () => {
    const other = await startTestCore();
    const idle = grpcCaller(`127.0.0.1:${other.port}`);
    onTestFinished(() => idle.close());
    await idle.call('DirectoryService/PutStudio', { studio: { id: 'a', status: 1 } });

    await other.stop();

    expect(await refusalOf(idle.call('DirectoryService/GetStudio', { studioId: 'a' }))).toMatchObject({
      code: 'UNAVAILABLE',
    });
  });

  test('acknowledged writes during a stop are stored', async () => {
    const other = await startTestCore();
    const busy = grpcCaller(`127.0.0.1:${other.port}`);
    onTestFinished(() => busy.close());
    await busy.call('DirectoryService/PutStudio', { studio: { id: studioId, status: 1 } });
    const witness = openSqliteStore(other.path);
    onTestFinished(() => witness.close());

    const creations = Promise.allSettled(
      times(50, () => busy.call<{ lead: WireLead }>('LeadIntakeService/CreateLead', capture())),
    );
    await other.stop();

    for (const outcome of await creations) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 14 });
      else expect(await witness.findLead(studioId, outcome.value.lead.id)).toMatchObject({ studioId });
    }
  });

  test('a core whose port is in use fails to start, and closes its database', async () => {
    const folder = core.path.replace(/leads\.db$/, '');
    const start = startTestCore({ CORE_PORT: String(core.port), DATABASE_URL: `sqlite:${folder}second.db` });

    await expect(start).rejects.toThrow(/EADDRINUSE/);
    // SQLite removes the write-ahead log when the last connection to the database closes.
    expect([existsSync(`${folder}second.db`), existsSync(`${folder}second.db-wal`)]).toEqual([true, false]);
  });
});

describe('one port, every protocol', () => {
  const withToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
    return next(request);
  };
  const options = () => ({ baseUrl: core.url, httpVersion: '2' as const, interceptors: [withToken] });

  test.each<[string, () => Transport]>([
    ['Connect with JSON', () => createConnectTransport({ ...options(), useBinaryFormat: false })],
    ['Connect with binary messages', () => createConnectTransport({ ...options(), useBinaryFormat: true })],
    ['Connect with GET', () => createConnectTransport({ ...options(), useHttpGet: true })],
    ['gRPC-Web', () => createGrpcWebTransport(options())],
    ['gRPC', () => createGrpcTransport(options())],
  ])('%s', async (_, transport) => {
    const client = createClient(LeadIntakeService, transport());
    const request = { ...capture(), contact: { value: { case: 'email' as const, value: `${newId()}@example.org` } } };

    const { lead } = await client.createLead({ ...request, note: HARD_TEXTS.emoji as string });
    const { lead: read } = await client.getLead({ studioId, leadId: lead?.id as string });
    const error = await client
      .createLead({ ...request, idempotencyKey: newId() })
      .then(() => new Error('not refused'), ConnectError.from);

    expect(read).toEqual(lead);
    expect(read).toMatchObject({ studioId, note: HARD_TEXTS.emoji, stage: LeadStage.NEW });
    expect(error).toMatchObject({ code: Code.AlreadyExists });
    expect((error as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'LEAD_ALREADY_OPEN', domain: 'leadintake', metadata: { leadId: lead?.id } },
    ]);
  });

  test('half of a surrogate pair, which only JSON can carry, is refused', async () => {
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': '/leadintake.v1.LeadIntakeService/CreateLead',
      'content-type': 'application/json',
      authorization: `Bearer ${CORE_TOKEN}`,
    });
    stream.end(JSON.stringify(capture({ displayName: '\ud83e' })));

    expect(await json(stream)).toMatchObject({ code: 'invalid_argument' });
    expect(await leads('ListLeads', { studioId })).toMatchObject({ leads: [] });
  });
});

describe('TLS', () => {
  let authority: Authority;
  let strangers: Authority;
  let server: Certificate;

  beforeAll(async () => {
    authority = await anAuthority('The authority of the tests');
    strangers = await anAuthority('Somebody else');
    server = await authority.issue('localhost', 'server');
  });

  async function secureCore(extra: Record<string, string> = {}): Promise<TestCore> {
    const folder = core.path.replace(/leads\.db$/, '');
    const files: Record<string, string> = {};
    for (const [name, contents] of Object.entries({
      CORE_TLS_CERT_FILE: server.cert,
      CORE_TLS_KEY_FILE: server.key,
      ...extra,
    })) {
      files[name] = `${folder}${name}.pem`;
      writeFileSync(files[name], contents);
    }
    const secure = await startTestCore(files);
    onTestFinished(() => secure.stop());
    return secure;
  }

  function secureCaller({ port }: TestCore, root = authority, own?: Certificate, host = 'localhost'): GrpcCaller {
    const channel = credentials.createSsl(
      Buffer.from(root.cert),
      own ? Buffer.from(own.key) : null,
      own ? Buffer.from(own.cert) : null,
    );
    const secure = grpcCaller(`${host}:${port}`, channel);
    onTestFinished(() => secure.close());
    return secure;
  }

  const list = (secure: GrpcCaller) => secure.call('LeadIntakeService/ListLeads', { studioId });
  const EMPTY = { leads: [], nextPageToken: '' };
  const NO_CONNECTION = { code: 'UNAVAILABLE' };

  test('a caller that trusts the authority is served, one that trusts another does not talk to the core', async () => {
    const secure = await secureCore();

    expect(secure.url).toMatch(/^https:/);
    expect(await list(secureCaller(secure))).toEqual(EMPTY);
    expect(await refusalOf(list(secureCaller(secure, strangers)))).toMatchObject(NO_CONNECTION);
  });

  test('a caller without TLS is not served', async () => {
    const secure = await secureCore();
    const plain = grpcCaller(`localhost:${secure.port}`);
    onTestFinished(() => plain.close());

    expect(await refusalOf(list(plain))).toMatchObject(NO_CONNECTION);
  });

  test('TLS does not stand in for the token', async () => {
    const secure = secureCaller(await secureCore());

    expect(
      await refusalOf(secure.call('LeadIntakeService/ListLeads', { studioId }, { authorization: undefined })),
    ).toMatchObject({ reason: 'CALLER_UNAUTHENTICATED' });
  });

  test('mutual TLS: a caller with a certificate of the authority is served, any other is not', async () => {
    const secure = await secureCore({ CORE_TLS_CLIENT_CA_FILE: authority.cert });
    const known = await authority.issue('gateway', 'client');
    const unknown = await strangers.issue('gateway', 'client');

    expect(await list(secureCaller(secure, authority, known))).toEqual(EMPTY);
    expect(await refusalOf(list(secureCaller(secure, authority)))).toMatchObject(NO_CONNECTION);
    expect(await refusalOf(list(secureCaller(secure, authority, unknown)))).toMatchObject(NO_CONNECTION);
    expect(await list(secureCaller(secure, authority, known))).toEqual(EMPTY);
  });

  test('Connect over HTTP/1.1 is served on the same port, and its connection does not keep the core from stopping', async () => {
    const secure = await secureCore();

    const answer = await new Promise((resolve, reject) => {
      const request = httpsRequest(
        `https://localhost:${secure.port}/leadintake.v1.LeadIntakeService/ListLeads`,
        {
          method: 'POST',
          ca: authority.cert,
          headers: { 'content-type': 'application/json', authorization: `Bearer ${CORE_TOKEN}` },
        },
        (response) => resolve(json(response).then((body) => ({ version: response.httpVersion, body }))),
      );
      request.on('error', reject).end(JSON.stringify({ studioId }));
    });

    expect(answer).toEqual({ version: '1.1', body: {} });
    await secure.stop();
  });

  test('an invalid certificate stops the start, and the database is closed', async () => {
    const folder = core.path.replace(/leads\.db$/, '');
    writeFileSync(`${folder}broken.pem`, 'not a certificate');
    const start = startTestCore({
      CORE_TLS_CERT_FILE: `${folder}broken.pem`,
      CORE_TLS_KEY_FILE: `${folder}broken.pem`,
      DATABASE_URL: `sqlite:${folder}third.db`,
    });

    await expect(start).rejects.toThrow();
    expect(existsSync(`${folder}third.db-wal`)).toBe(false);
  });
});

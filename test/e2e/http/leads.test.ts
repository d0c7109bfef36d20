import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditAction } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import { LeadChangeKind, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DAY_MS, HARD_TEXTS } from '../../support/builders.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import {
  aCapture,
  anEmail,
  aService,
  expectProblem,
  LEADS,
  type LeadJson,
  readLead,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService();

/** Creates leads one after the other. Returns their ids, newest first. */
async function createLeads({ secret }: StudioWithKey, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.unshift((await readLead(await service.post(secret, aCapture()), 201)).id);
  return ids;
}

/** Reads a page of a list. */
async function readPage(secret: string, query = '') {
  const response = await service.get(secret, query);
  const { leads, nextCursor } = (await response.json()) as { leads: LeadJson[]; nextCursor: string | null };
  expect(response.headers.get('cache-control')).toBe('no-store');
  return { ids: leads.map(({ id }) => id), leads, next: nextCursor };
}

describe('a created lead', () => {
  test('a created lead starts as new, with equal times and a version 7 id', {
    tags: ['2.1.id', '2.1.createdAt', '2.1.version-7', '3.1.initial'],
  }, async () => {
    const { secret } = await service.aStudioWithKey();
    const before = Date.now();

    const lead = await readLead(await service.post(secret, aCapture()), 201);

    expect(lead).toMatchObject({ stage: 'new', updatedAt: lead.createdAt });
    expect(lead.id[14]).toBe('7');
    expect(Date.parse(lead.createdAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(lead.createdAt)).toBeLessThanOrEqual(Date.now());
  });

  test('a created lead keeps its text and contact as typed, and is returned without the contact', {
    tags: ['2.1.displayName', '2.1.note', '2.1.no-contact', '2.2.unchanged', '2.2.uuids'],
  }, async () => {
    const { secret, studioId, sourceId } = await service.aStudioWithKey();
    const contacts = { email: 'Ada.Lovelace+Trial@Example.ORG', phone: ' (0171) 234-56 78 ext. 9' };
    for (const [type, value] of Object.entries(contacts)) {
      const capture = aCapture({ contact: { type, value }, sourceId: sourceId.toUpperCase() });
      const response = await service.post(secret, capture);
      const copy = response.clone();
      const { id, ...created } = await readLead(response, 201);
      expect(created.sourceId).toBe(sourceId);
      const answers = [copy, await service.get(secret, `/${id}`), await service.get(secret)];
      for (const answer of answers) expect(await answer.text()).not.toContain(value);
      const { lead } = await service.leads.getLead({ studioId, leadId: id, view: LeadView.FULL });
      expect(lead?.contact?.value).toEqual({ case: type, value });
    }
    for (const text of Object.values(HARD_TEXTS)) {
      const created = await readLead(await service.post(secret, aCapture({ displayName: text, note: text })), 201);
      expect(created).toMatchObject({ displayName: text, note: text });
      expect(await readLead(await service.get(secret, `/${created.id}`))).toEqual(created);
    }
  });
});

test('an unknown, foreign or disabled source is refused, and nothing is written', {
  tags: ['2.2.sourceId', '4.1.4', '7.integration_source_invalid'],
}, async () => {
  const [own, other] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
  const { studioId, sourceId } = own;
  await service.directory.putLeadSource({ leadSource: { studioId, id: sourceId, name: 'Web form', enabled: false } });
  for (const each of [randomUUID(), other.sourceId, sourceId]) {
    const response = await service.post(own.secret, aCapture({ sourceId: each }));
    await expectProblem(response, 400, 'integration_source_invalid', []);
  }
  expect(await service.countLeads(studioId)).toBe(0);
});

test.each(['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
  'a request may name its media type as %s',
  { tags: ['4.1.headers', '4.1.body'] },
  async (mediaType) => {
    const { secret } = await service.aStudioWithKey();
    await readLead(await service.post(secret, aCapture(), { 'content-type': mediaType }), 201);
  },
);

/** Requests a path below the leads that `fetch` would normalise. */
const rawGet = (secret: string, path: string, rest = lines('')) =>
  rawRequest(
    service.url,
    lines(`GET ${LEADS}${path} HTTP/1.1`, 'Host: leads.test', `Authorization: Bearer ${secret}`) + rest,
  );

test('a lead is read and listed in its current stage after every move', {
  tags: ['2.1.stage', '2.1.updatedAt', '2.4.leads', '3.1.stages', '3.1.moves', '4.2.current-state'],
}, async () => {
  const { secret, studioId, sourceId } = await service.aStudioWithKey();
  let before = await readLead(await service.post(secret, aCapture({ sourceId, note: 'x' })), 201);
  for (const [word, stage] of [
    ['contacted', LeadStage.CONTACTED],
    ['trial_booked', LeadStage.TRIAL_BOOKED],
    ['trial_attended', LeadStage.TRIAL_ATTENDED],
    ['won', LeadStage.WON],
    ['lost', LeadStage.LOST],
    ['new', LeadStage.NEW],
  ] as const) {
    await service.leads.changeLeadStage({ studioId, leadId: before.id, stage });
    const moved = await readLead(await service.get(secret, `/${before.id}`));
    expect(moved).toEqual({ ...before, stage: word, updatedAt: moved.updatedAt });
    expect(Date.parse(moved.updatedAt)).toBeGreaterThan(Date.parse(before.updatedAt));
    expect((await readPage(secret)).leads).toEqual([moved]);
    before = moved;
  }
});

test('a lead is read by its id in any spelling; a body, a media type and a key are ignored', {
  tags: ['2.2.uuids', '4.2.ignored'],
}, async () => {
  const { secret } = await service.aStudioWithKey();
  const created = await readLead(await service.post(secret, aCapture()), 201);
  const encoded = [...created.id].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');
  const ignored = lines('Content-Type: text/nonsense', 'Idempotency-Key: nonsense', 'Content-Length: 1', '', '{');

  expect(await readLead(await service.get(secret, `/${created.id.toUpperCase()}`))).toEqual(created);
  expect(await readLead(await rawGet(secret, `/${encoded}`, ignored.trimEnd()))).toEqual(created);
});

// @proves fastify-5
test.each([
  ['a word', '/newest'],
  ['without hyphens', `/${randomUUID().replaceAll('-', '')}`],
  ['followed by a line end', `/${randomUUID()}%0A`],
  ['with a slash in percent-encoding', '/a%2Fb'],
  ['a name with a meaning', '/__proto__'],
  ['very long', `/${'a'.repeat(10_000)}`],
])('an id that is not a UUID is refused: %s', { tags: ['4.2.id'] }, async (_, path) => {
  const { secret } = await service.aStudioWithKey();
  await expectProblem(await rawGet(secret, path), 400, 'integration_invalid_request', ['id']);
});

test('a list continues where its page ended, with any limit or key, despite concurrent changes', {
  tags: ['4.3.paging', '4.3.newest-first', '4.3.steady', '4.3.own-cursor'],
}, async () => {
  const studio = await service.aStudioWithKey();
  const { secret, studioId, memberId } = studio;
  const ids = await createLeads(studio, 7);
  const { secret: another } = await service.apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'Another',
    scopes: [ApiKeyScope.LEADS_READ],
    expireTime: timestampFromMs(Date.now() + DAY_MS),
  });

  const first = await readPage(secret, '?limit=3');
  await createLeads(studio, 2);
  await service.leads.changeLeadStage({ studioId, leadId: ids[5] ?? '', stage: LeadStage.WON });
  const second = await readPage(another, `?limit=2&cursor=${first.next}`);
  const third = await readPage(secret, `?limit=2&cursor=${second.next}`);

  expect([first.ids, second.ids, third.ids]).toEqual([ids.slice(0, 3), ids.slice(3, 5), ids.slice(5)]);
  // A full page can be the last one.
  expect(third.next).toBeNull();
});

test('unknown query parameters are ignored', { tags: ['4.3.parameters'] }, async () => {
  const studio = await service.aStudioWithKey();
  const ids = await createLeads(studio, 2);
  for (const query of ['?', '?&&', '?Limit=0', '?limit[]=0', '?__proto__=x&constructor=1', '?stage=won']) {
    expect((await readPage(studio.secret, query)).ids).toEqual(ids);
  }
});

// @proves erasure-1
test('an erased lead is not found, frees its contact, and is not recreated by a repetition', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const capture = { displayName: 'Ada Lovelace', contact: anEmail(), note: 'Calls back.' };
  const key = { 'idempotency-key': randomUUID() };
  const { id } = await readLead(await service.post(secret, capture, key), 201);

  const { lead } = await service.leads.eraseLead({ studioId, leadId: id.toUpperCase(), memberId: 'the-boss' });
  expect(lead).toMatchObject({ id, studioId, displayName: '', stage: LeadStage.NEW, eraseTime: lead?.updateTime });
  expect(lead?.contact).toBeUndefined();

  await expectProblem(await service.get(secret, `/${id}`), 404, 'integration_lead_not_found');
  const repeated = await service.post(secret, capture, key);
  const { detail } = await expectProblem(repeated, 409, 'integration_idempotency_conflict');
  expect(detail).toBe('The lead that was created with this Idempotency-Key was erased since. Nothing was written.');
  expect(await service.countLeads(studioId)).toBe(0);
  await readLead(await service.post(secret, capture), 201);

  expect(await service.leads.eraseLead({ studioId, leadId: id })).toMatchObject({ lead });
  const { events } = await service.audit.listAuditEvents({ studioId, leadId: id });
  expect(events).toMatchObject([{ action: AuditAction.LEAD_ERASED, memberId: 'the-boss' }]);
  const { changes } = await service.leads.pullLeadChanges({ max: 100 });
  const erased = changes.find((change) => change.lead?.id === id);
  expect(erased?.lead).toEqual(lead);
  expect(erased?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED, LeadChangeKind.ERASED]);
});

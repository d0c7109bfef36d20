import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, aService, expectProblem, LEADS, leadOf } from '../../support/service.ts';

const service = aService();

/** Reads a path below the leads that `fetch` would normalise. */
const rawGet = (secret: string, path: string) =>
  rawRequest(
    service.url,
    lines(`GET ${LEADS}${path} HTTP/1.1`, 'Host: leads.example.test', `Authorization: Bearer ${secret}`, ''),
  );

test.each([
  ['contacted', LeadStage.CONTACTED],
  ['trial_booked', LeadStage.TRIAL_BOOKED],
  ['trial_attended', LeadStage.TRIAL_ATTENDED],
  ['won', LeadStage.WON],
  ['lost', LeadStage.LOST],
])(
  'a lead is read in its current state: %s, and back to new',
  { tags: ['2.1.stage', '2.1.updatedAt', '3.1.stages', '3.1.moves', '4.2.current-state'] },
  async (word, stage) => {
    const { secret, studioId } = await service.aStudioWithKey();
    const created = await leadOf(await service.post(secret, aCapture()), 201);

    await service.leads.changeLeadStage({ studioId, leadId: created.id, stage });
    const moved = await leadOf(await service.get(secret, `/${created.id}`));
    await service.leads.changeLeadStage({ studioId, leadId: created.id, stage: LeadStage.NEW });
    const back = await leadOf(await service.get(secret, `/${created.id}`));

    expect(moved).toEqual({ ...created, stage: word, updatedAt: moved.updatedAt });
    expect(back).toEqual({ ...created, updatedAt: back.updatedAt });
    expect(Date.parse(moved.updatedAt)).toBeGreaterThan(Date.parse(created.updatedAt));
    expect(Date.parse(back.updatedAt)).toBeGreaterThan(Date.parse(moved.updatedAt));
  },
);

test('a lead is found by its id in upper case or percent-encoding, and returned with it in lower case', {
  tags: ['2.2.uuids'],
}, async () => {
  const { secret } = await service.aStudioWithKey();
  const created = await leadOf(await service.post(secret, aCapture()), 201);
  const encoded = [...created.id].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');

  expect(await leadOf(await service.get(secret, `/${created.id.toUpperCase()}`))).toEqual(created);
  expect(await leadOf(await rawGet(secret, `/${encoded}`))).toEqual(created);
});

describe('an id', () => {
  // @proves fastify-5
  test.each([
    ['a word', '/newest'],
    ['without hyphens', `/${randomUUID().replaceAll('-', '')}`],
    ['of another variant', '/0b4c1d6a-9d3e-4a53-7a5f-6f1f0f0d7c11'],
    ['with a line end behind', `/${randomUUID()}%0A`],
    ['with a NUL behind', `/${randomUUID()}%00`],
    ['with a slash in percent-encoding', '/a%2Fb'],
    ['a name with a meaning', '/__proto__'],
    ['very long', `/${'a'.repeat(10_000)}`],
  ])('that is not a UUID is refused: %s', { tags: ['4.2.id'] }, async (_, path) => {
    const { secret } = await service.aStudioWithKey();
    await expectProblem(await rawGet(secret, path), 400, 'integration_invalid_request', ['id']);
  });
});

test('a body, a media type and an Idempotency-Key on a read are ignored', {
  tags: ['4.2.ignored'],
}, async () => {
  const { secret } = await service.aStudioWithKey();
  const created = await leadOf(await service.post(secret, aCapture()), 201);
  const head = lines(
    `GET ${LEADS}/${created.id} HTTP/1.1`,
    'Host: leads.example.test',
    `Authorization: Bearer ${secret}`,
    'Content-Type: text/nonsense',
    'Idempotency-Key: nonsense',
    'Content-Length: 1',
    '',
  );

  expect(await leadOf(await rawRequest(service.url, `${head}{`))).toEqual(created);
});

import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { anEmail, aService, expectProblem, LEADS, readLead } from '../../support/service.ts';

const service = aService();

const under = (key: string) => ({ 'idempotency-key': key });

/** Creates a lead with every field; returns everything needed to repeat the request. */
async function created() {
  const studio = await service.aStudioWithKey();
  const capture = {
    displayName: 'Ada Lovelace',
    // The address is also a valid phone number.
    contact: anEmail(`123-${randomUUID()}@example.org`),
    sourceId: studio.sourceId,
    note: 'Asked about the trial.',
  };
  const key = randomUUID();
  const response = await service.post(studio.secret, capture, under(key));
  const bytes = await response.clone().bytes();
  const { id } = await readLead(response, 201);
  return { ...studio, capture, key, bytes, id };
}

/** Expects the original response, byte for byte, and one lead in the studio. */
async function expectReplay(response: Response, { bytes, studioId }: { bytes: Uint8Array; studioId: string }) {
  expect(response.status).toBe(201);
  expect(response.headers.get('idempotent-replayed')).toBe('true');
  expect(response.headers.get('location')).toBe(`${LEADS}/${JSON.parse(Buffer.from(bytes).toString()).lead.id}`);
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  expect(Buffer.from(await response.bytes()).equals(bytes)).toBe(true);
  expect(await service.countLeads(studioId)).toBe(1);
}

describe('the same key with the same data', () => {
  test('the same key and data get the original response in any spelling and with any API key', {
    tags: ['2.2.uuids', '4.1.1', '4.1.replayed', '4.1.same-data', '4.1.memory'],
  }, async () => {
    const original = await created();
    const { capture, key, studioId, memberId } = original;
    const { secret } = await service.apiKeys.createApiKey({
      studioId,
      memberId,
      name: 'Another',
      scopes: [ApiKeyScope.LEADS_CREATE],
      expireTime: timestampFromMs(Date.now() + DAY_MS),
    });
    await expectReplay(await service.post(secret, capture, under(key.toUpperCase())), original);
    for (const body of [
      JSON.stringify(Object.fromEntries(Object.entries(capture).toReversed()), null, '\t'),
      JSON.stringify(capture).replace('Ada', String.raw`\u0041da`),
    ])
      await expectReplay(await service.post(original.secret, body, under(key)), original);
  });

  // @proves leads-8
  test('a repetition gets the original response after the lead was corrected', {
    tags: ['4.1.1', '4.1.original', '4.2.current-state'],
  }, async () => {
    const original = await created();
    const { studioId, id, secret, capture, key } = original;
    const contact = { value: { case: 'email', value: anEmail().value } } as const;
    const lead = { id, displayName: 'Augusta Ada King', contact };
    await service.leads.updateLead({
      studioId,
      lead,
      updateMask: { paths: ['display_name', 'contact', 'note', 'source_id'] },
    });

    await expectReplay(await service.post(secret, capture, under(key)), original);
    const now = await readLead(await service.get(secret, `/${id}`), 200);
    expect(now).toMatchObject({ displayName: 'Augusta Ada King', note: null, sourceId: null });
    expect(now.updatedAt > now.createdAt).toBe(true);
    const corrected = { ...capture, displayName: now.displayName, contact: anEmail(contact.value.value), note: null };
    await expectProblem(await service.post(secret, corrected, under(key)), 409, 'integration_idempotency_conflict', []);

    await readLead(await service.post(secret, capture), 201);
    const replay = await service.post(secret, capture, under(key));
    expect(Buffer.from(await replay.bytes()).equals(original.bytes)).toBe(true);
  });

  test('a repetition gets its response after the source was disabled', {
    tags: ['4.1.1', '4.1.original'],
  }, async () => {
    const original = await created();
    const { studioId, sourceId } = original;
    await service.directory.putLeadSource({
      leadSource: { studioId, id: sourceId, name: 'Web form', enabled: false },
    });

    await expectReplay(await service.post(original.secret, original.capture, under(original.key)), original);
  });
});

describe('the same key with other data', () => {
  // test/unit/fingerprint.test.ts tries each part of a lead.
  test.each<[string, (capture: Record<string, unknown>) => Record<string, unknown>]>([
    ['another note', () => ({ note: 'x' })],
    [
      'the contact in another spelling',
      ({ contact }) => ({ contact: anEmail(`${Object(contact).value}`.toUpperCase()) }),
    ],
    [
      'the same text as a contact of another type',
      ({ contact }) => ({ contact: { ...Object(contact), type: 'phone' } }),
    ],
  ])(
    'the same key with other data gets 409 and changes nothing: %s',
    { tags: ['4.1.2', '4.1.same-data', '7.integration_idempotency_conflict'] },
    async (_, makeChange) => {
      const original = await created();
      const capture = { ...original.capture, ...makeChange(original.capture) };

      const response = await service.post(original.secret, capture, under(original.key));

      expect(response.headers.has('link')).toBe(false);
      await expectProblem(response, 409, 'integration_idempotency_conflict', []);
      await expectReplay(await service.post(original.secret, original.capture, under(original.key)), original);
    },
  );
});

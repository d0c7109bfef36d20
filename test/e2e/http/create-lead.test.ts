import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { HARD_TEXTS } from '../../support/builders.ts';
import { aCapture, aService, expectProblem, leadOf, type StudioWithKey } from '../../support/service.ts';

const service = aService();

describe('a created lead', () => {
  test('starts as new, with equal times and a version 7 id', {
    tags: ['2.1.id', '2.1.createdAt', '2.1.version-7', '3.1.initial'],
  }, async () => {
    const { secret } = await service.aStudioWithKey();
    const before = Date.now();

    const lead = await leadOf(await service.post(secret, aCapture()), 201);

    expect(lead.stage).toBe('new');
    expect(lead.updatedAt).toBe(lead.createdAt);
    expect(lead.id[14]).toBe('7');
    expect(Date.parse(lead.createdAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(lead.createdAt)).toBeLessThanOrEqual(Date.now());
  });

  test.each([
    ['email', 'Ada.Lovelace+Trial@Example.ORG'],
    ['phone', ' (0171) 234-56 78 ext. 9'],
  ])(
    'keeps its contact as typed, and is returned without it: %s',
    { tags: ['2.1.no-contact', '2.2.unchanged'] },
    async (type, value) => {
      const { secret, studioId } = await service.aStudioWithKey();

      const response = await service.post(secret, aCapture({ contact: { type, value } }));
      const copy = response.clone();
      const { id } = await leadOf(response, 201);

      const answers = [copy, await service.get(secret, `/${id}`), await service.get(secret)];
      for (const answer of answers) expect(await answer.text()).not.toContain(value);
      const { lead } = await service.leads.getLead({ studioId, leadId: id, view: LeadView.FULL });
      expect(lead?.contact?.value).toEqual({ case: type, value });
    },
  );

  // @proves leads-22
  test.each(Object.entries(HARD_TEXTS))(
    'is returned with its texts unchanged: %s',
    { tags: ['2.1.displayName', '2.1.note', '2.2.unchanged'] },
    async (_, text) => {
      const { secret } = await service.aStudioWithKey();

      const created = await leadOf(await service.post(secret, aCapture({ displayName: text, note: text })), 201);
      const read = await leadOf(await service.get(secret, `/${created.id}`));

      expect(created).toMatchObject({ displayName: text, note: text });
      expect(read).toEqual(created);
    },
  );
});

describe('a source', () => {
  test('of the studio is accepted in any letter case and returned in lower case', { tags: ['2.2.uuids'] }, async () => {
    const { secret, sourceId } = await service.aStudioWithKey();

    const lead = await leadOf(await service.post(secret, aCapture({ sourceId: sourceId.toUpperCase() })), 201);

    expect(lead.sourceId).toBe(sourceId);
  });

  test.each([
    ['unknown', async () => randomUUID()],
    ['of another studio', async () => (await service.aStudioWithKey()).sourceId],
    [
      'disabled',
      async ({ studioId, sourceId }: StudioWithKey) => {
        await service.directory.putLeadSource({
          leadSource: { studioId, id: sourceId, name: 'Web form', enabled: false },
        });
        return sourceId;
      },
    ],
  ])(
    'that is %s is refused, and nothing is written',
    { tags: ['2.2.sourceId', '4.1.4', '7.integration_source_invalid'] },
    async (_, sourceOf) => {
      const studio = await service.aStudioWithKey();
      const sourceId = await sourceOf(studio);

      const response = await service.post(studio.secret, aCapture({ sourceId }));

      await expectProblem(response, 400, 'integration_source_invalid', []);
      expect(await service.countLeads(studio.studioId)).toBe(0);
    },
  );
});

test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
  'a request may name its media type as %s',
  { tags: ['4.1.headers', '4.1.body'] },
  async (mediaType) => {
    const { secret } = await service.aStudioWithKey();
    await leadOf(await service.post(secret, aCapture(), { 'content-type': mediaType }), 201);
  },
);

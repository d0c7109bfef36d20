import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DAY_MS, times } from '../../support/builders.ts';
import { aCapture, aService, expectLead, expectProblem, type LeadJson, leadOf } from '../../support/service.ts';

const service = aService();

/** Creates leads one after the other; returns their ids, newest first. */
async function leadsOf(studioId: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (const index of times(count, (index) => index)) {
    const { lead } = await service.leads.createLead({
      studioId,
      idempotencyKey: randomUUID(),
      displayName: `Lead ${index}`,
      contact: { value: { case: 'email', value: `${randomUUID()}@example.org` } },
    });
    ids.unshift(lead?.id ?? '');
  }
  return ids;
}

/** Reads a page and expects it to follow the contract. */
async function pageOf(secret: string, query = ''): Promise<{ ids: string[]; leads: LeadJson[]; next: string | null }> {
  const response = await service.get(secret, query);
  const text = await response.text();
  expect({ status: response.status, text }).toEqual({ status: 200, text: expect.any(String) });
  expect(response.headers.get('content-type')).toMatch(/^application\/json(?:; charset=utf-8)?$/);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const { leads, nextCursor, ...others } = JSON.parse(text);
  expect(others).toEqual({});
  expect(leads.length).toBeLessThanOrEqual(100);
  for (const lead of leads) expectLead(lead);
  if (nextCursor !== null) expect(nextCursor).toMatch(/^[A-Za-z0-9_-]{1,512}$/);
  return { ids: leads.map(({ id }: LeadJson) => id), leads, next: nextCursor };
}

describe('a list', () => {
  test('has each lead as a read returns it, in its current state', { tags: ['2.4.leads'] }, async () => {
    const { secret, studioId, sourceId } = await service.aStudioWithKey();
    const { id } = await leadOf(await service.post(secret, aCapture({ sourceId, note: 'x' })), 201);
    await service.leads.changeLeadStage({ studioId, leadId: id, stage: LeadStage.TRIAL_BOOKED });

    const [listed] = (await pageOf(secret)).leads;

    expect(listed?.stage).toBe('trial_booked');
    expect(listed).toEqual(await leadOf(await service.get(secret, `/${id}`)));
  });

  test('that ends with a full page has no further cursor', { tags: ['4.3.paging'] }, async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    await leadsOf(studioId, 4);

    const first = await pageOf(secret, '?limit=2');
    const second = await pageOf(secret, `?limit=2&cursor=${first.next}`);

    expect(first.next).not.toBeNull();
    expect(second.ids.length).toBe(2);
    expect(second.next).toBeNull();
  });

  test('is not affected by leads that are created or changed meanwhile', {
    tags: ['4.3.newest-first', '4.3.steady'],
  }, async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const ids = await leadsOf(studioId, 6);
    const first = await pageOf(secret, '?limit=3');

    await leadsOf(studioId, 2);
    await service.leads.changeLeadStage({ studioId, leadId: ids[5] ?? '', stage: LeadStage.WON });
    const second = await pageOf(secret, `?limit=3&cursor=${first.next}`);

    expect([...first.ids, ...second.ids]).toEqual(ids);
  });
});

describe('a cursor', () => {
  test('is valid with another limit and another key of the studio', { tags: ['4.3.own-cursor'] }, async () => {
    const { secret, studioId, memberId } = await service.aStudioWithKey();
    const ids = await leadsOf(studioId, 4);
    const another = await service.apiKeys.createApiKey({
      studioId,
      memberId,
      name: 'Another',
      scopes: [ApiKeyScope.LEADS_READ],
      expireTime: timestampFromMs(Date.now() + DAY_MS),
    });

    const { next } = await pageOf(secret, '?limit=1');

    expect((await pageOf(another.secret, `?limit=3&cursor=${next}`)).ids).toEqual(ids.slice(1));
  });

  test('of another studio is refused', { tags: ['4.3.cursor', '4.3.own-cursor'] }, async () => {
    const [own, foreign] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
    await leadsOf(foreign.studioId, 2);
    const { next } = await pageOf(foreign.secret, '?limit=1');

    const response = await service.get(own.secret, `?cursor=${next}`);

    await expectProblem(response, 400, 'integration_invalid_request', ['cursor']);
  });

  test.each([
    ['of 513 characters', `cursor=${'A'.repeat(513)}`],
    ['in plain base64', `cursor=${'A'.repeat(42)}%2B%2F`],
    ['with a line end', `cursor=${'A'.repeat(44)}%0A`],
    ['with a NUL', 'cursor=%00'],
    ["a lead's id", `cursor=${randomUUID()}`],
  ])(
    'that the service did not create is refused: %s',
    { tags: ['4.3.cursor', '4.3.parameters', '7.integration_invalid_request'] },
    async (_, query) => {
      const { secret } = await service.aStudioWithKey();
      await expectProblem(await service.get(secret, `?${query}`), 400, 'integration_invalid_request', ['cursor']);
    },
  );
});

test('unknown query parameters are ignored', { tags: ['4.3.parameters'] }, async () => {
  const { secret, studioId } = await service.aStudioWithKey();
  const ids = await leadsOf(studioId, 2);
  for (const query of [
    '?',
    '?&&',
    '?Limit=0',
    '?limit[]=0',
    '?page=2&offset=1',
    '?__proto__=x&constructor=1',
    '?stage=won',
  ]) {
    expect((await pageOf(secret, query)).ids).toEqual(ids);
  }
});

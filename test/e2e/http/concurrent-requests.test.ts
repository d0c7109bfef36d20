import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import {
  aCapture,
  aService,
  expectLead,
  expectProblem,
  type LeadJson,
  leadOf,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService();

/** A lead with all that was sent to create it. */
interface Known {
  readonly capture: Record<string, unknown>;
  readonly key: string;
  readonly lead: LeadJson;
}

/** A studio with a few leads, and what else requests can be about. */
interface Arranged extends StudioWithKey {
  readonly known: readonly Known[];
  readonly disabledSourceId: string;
  readonly revokedSecret: string;
  readonly readingSecret: string;
}

async function arrange(name: string): Promise<Arranged> {
  const studio = await service.aStudioWithKey();
  const { studioId, memberId } = studio;
  const disabledSourceId = randomUUID();
  await service.directory.putLeadSource({
    leadSource: { studioId, id: disabledSourceId, name: 'Closed', enabled: false },
  });
  const { expireTime } = (await service.apiKeys.listApiKeys({ studioId, memberId })).apiKeys[0] ?? {};
  const issue = async (scopes: ApiKeyScope[]) =>
    service.apiKeys.createApiKey({ studioId, memberId, name: 'Another', scopes, ...(expireTime && { expireTime }) });
  const revoked = await issue([ApiKeyScope.LEADS_READ]);
  await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId: revoked.apiKey?.id ?? '' });
  const reading = await issue([ApiKeyScope.LEADS_READ]);
  const known: Known[] = [];
  for (const index of times(12, (each) => each)) {
    const [capture, key] = [
      aCapture({ displayName: `${name} ${index}`, note: `${name} known ${index}` }),
      randomUUID(),
    ];
    known.push({ capture, key, lead: await leadOf(await service.post(studio.secret, capture, keyed(key)), 201) });
  }
  return { ...studio, known, disabledSourceId, revokedSecret: revoked.secret, readingSecret: reading.secret };
}

const keyed = (key: string) => ({ 'idempotency-key': key });

/** What makes a request's response distinguishable from all others. */
interface Mark {
  readonly name: string;
  readonly headers: { readonly 'x-request-id': string };
  /** The lead of the studio that the request is about, if it is about one. */
  readonly known: Known;
}

/** Every kind of request; each sends one and expects its own response. */
const KINDS: Readonly<Record<string, (studio: Arranged, other: Arranged, mark: Mark) => Promise<Response>>> = {
  async create({ secret, sourceId }, _, { name, headers }) {
    const response = await service.post(
      secret,
      aCapture({ displayName: name, note: `Note ${name}`, sourceId }),
      headers,
    );
    const lead = await leadOf(response, 201);
    expect(lead).toMatchObject({ displayName: name, note: `Note ${name}`, sourceId, stage: 'new' });
    expect(response.headers.has('idempotent-replayed')).toBe(false);
    return response;
  },
  async replay({ secret }, _, { headers, known: { capture, key, lead } }) {
    const response = await service.post(secret, capture, { ...headers, ...keyed(key) });
    expect(await leadOf(response, 201)).toEqual(lead);
    expect(response.headers.get('idempotent-replayed')).toBe('true');
    return response;
  },
  async conflict({ secret }, _, { headers, known: { capture, key } }) {
    const response = await service.post(secret, { ...capture, note: 'other' }, { ...headers, ...keyed(key) });
    await expectProblem(response, 409, 'integration_idempotency_conflict', []);
    return response;
  },
  async 'open contact'({ secret }, _, { headers, known: { capture, lead } }) {
    const response = await service.post(secret, aCapture({ contact: capture.contact }), headers);
    await expectProblem(response, 409, 'integration_lead_already_open', []);
    expect(response.headers.get('link')).toContain(lead.id);
    return response;
  },
  async 'disabled source'({ secret, disabledSourceId }, _, { headers }) {
    const response = await service.post(secret, aCapture({ sourceId: disabledSourceId }), headers);
    await expectProblem(response, 400, 'integration_source_invalid', []);
    return response;
  },
  async "another studio's source"({ secret }, { sourceId }, { headers }) {
    const response = await service.post(secret, aCapture({ sourceId }), headers);
    await expectProblem(response, 400, 'integration_source_invalid', []);
    return response;
  },
  async 'invalid body'({ secret }, _, { headers }) {
    const response = await service.post(secret, aCapture({ displayName: '' }), headers);
    await expectProblem(response, 400, 'integration_invalid_request', ['displayName']);
    return response;
  },
  async get({ secret }, _, { headers, known: { lead } }) {
    const response = await service.get(secret, `/${lead.id}`, headers);
    expect(await leadOf(response)).toEqual(lead);
    return response;
  },
  async "get another studio's"({ secret, known: own }, other, { headers, known }) {
    const foreign = other.known[own.indexOf(known)]?.lead;
    const response = await service.get(secret, `/${foreign?.id}`, headers);
    await expectProblem(response, 404, 'integration_lead_not_found', []);
    return response;
  },
  async list({ secret, known: own }, _, { headers, known }) {
    const limit = 1 + own.indexOf(known);
    const response = await service.get(secret, `?limit=${limit}`, headers);
    const { leads } = (await response.json()) as { leads: unknown[] };
    expect(leads).toHaveLength(limit);
    // All leads belong to this studio, in whichever order they were created.
    const [person] = known.lead.displayName.split(' ');
    for (const lead of leads) expect(expectLead(lead).displayName.split(' ')[0]).toBe(person);
    return response;
  },
  async 'unknown key'(_studio, _other, { headers }) {
    const response = await service.get(newKeySecret(), '', headers);
    await expectProblem(response, 401, 'integration_key_invalid', []);
    return response;
  },
  async 'revoked key'({ revokedSecret }, _, { headers }) {
    const response = await service.get(revokedSecret, '', headers);
    await expectProblem(response, 401, 'integration_key_invalid', []);
    return response;
  },
  async 'key that only reads'({ readingSecret }, _, { headers }) {
    const response = await service.post(readingSecret, aCapture(), headers);
    await expectProblem(response, 403, 'integration_scope_forbidden', []);
    return response;
  },
};

test('300 concurrent requests of every kind, of two studios, each get their own response', async () => {
  const studios = [await arrange('Ada'), await arrange('Bob')] as const;
  const kinds = Object.entries(KINDS);

  const responses = await Promise.all(
    times(300, async (index) => {
      const [studio, other] = index % 2 === 0 ? studios : [studios[1], studios[0]];
      const turn = Math.floor(index / 2);
      const [, send] = kinds[turn % kinds.length] as (typeof kinds)[number];
      const known = studio.known[turn % studio.known.length] as Known;
      const requestId = `request-${index}`;
      const name = `${known.lead.displayName.split(' ')[0]} new ${index}`;
      const response = await send(studio, other, { name, headers: { 'x-request-id': requestId }, known });
      expect(response.headers.get('x-request-id')).toBe(requestId);
      return response;
    }),
  );

  const created = responses.filter(({ status, headers }) => status === 201 && !headers.has('idempotent-replayed'));
  expect(created.length).toBeGreaterThan(20);
  const counts = await Promise.all(studios.map(({ studioId }) => service.countLeads(studioId)));
  expect(counts.reduce((sum, count) => sum + count)).toBe(created.length + 2 * 12);
});

describe('during a burst of requests', () => {
  // @proves isolation-2
  test.each<[string, (studio: StudioWithKey) => Promise<unknown>, number, string]>([
    ['a key that is revoked', (studio) => service.apiKeys.revokeApiKey(studio), 401, 'integration_key_invalid'],
    ['a secret that is replaced', (studio) => service.apiKeys.replaceApiKey(studio), 401, 'integration_key_invalid'],
    [
      'a studio that is suspended',
      ({ studioId }) => service.directory.putStudio({ studio: { id: studioId, status: StudioStatus.SUSPENDED } }),
      402,
      'subscription_suspended',
    ],
    [
      'an issuer who is removed',
      (studio) => service.directory.removeMember(studio),
      403,
      'integration_issuer_forbidden',
    ],
  ])('%s admits no request that starts after the RPC returned', async (_, takeAway, status, code) => {
    for (const _ of times(2, () => 0)) {
      const studio = await service.aStudioWithKey();
      let isTaken = false;
      let served = 0;
      let refused = 0;
      const callers = times(16, async (index) => {
        for (let after = 0; after < 5; ) {
          const startsAfter = isTaken;
          const response =
            index % 2 === 0 ? await service.get(studio.secret) : await service.post(studio.secret, aCapture());
          if (startsAfter) {
            after += 1;
            await expectProblem(response, status, code, []);
            refused += 1;
          } else if (response.status === 200 || response.status === 201) {
            await response.arrayBuffer();
            served += 1;
          } else await expectProblem(response, status, code, []);
        }
      });
      await expect.poll(() => served).toBeGreaterThan(32);

      await takeAway(studio);
      isTaken = true;
      await Promise.all(callers);

      expect(refused).toBe(16 * 5);
    }
  });
});

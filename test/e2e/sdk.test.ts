import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import {
  createLeadIntakeClient,
  IdempotencyConflictError,
  LeadAlreadyOpenError,
  type LeadCapture,
  type LeadIntakeClientOptions,
  LeadIntakeError,
  NoAnswerError,
  ProblemError,
} from '../../sdk/index.ts';
import { times } from '../support/builders.ts';
import { anOwnService, aService, expectLead, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const service = aService();
let proxy: TcpProxy;
beforeAll(async () => {
  proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
});
afterAll(() => proxy.stop());

const capture = (overrides: Partial<LeadCapture> = {}): LeadCapture => ({
  displayName: 'Grace Hopper',
  contact: { type: 'email', value: `${randomUUID()}@example.org` },
  ...overrides,
});

/** What a client has sent: each attempt's idempotency key, and what came of it. */
interface Sent {
  readonly key: string | null;
  readonly outcome: number | 'none';
}

/** A client of a service, and what it sends. */
function clientOf(
  { secret }: Pick<StudioWithKey, 'secret'>,
  options: Partial<LeadIntakeClientOptions> & { readonly afterAttempt?: () => Promise<unknown> } = {},
) {
  const { afterAttempt, ...more } = options;
  const sent: Sent[] = [];
  const recordingFetch: typeof fetch = async (url, init) => {
    const key = new Headers(init?.headers).get('idempotency-key');
    try {
      const response = await fetch(url, init);
      sent.push({ key, outcome: response.status });
      return response;
    } catch (error) {
      sent.push({ key, outcome: 'none' });
      throw error;
    } finally {
      await afterAttempt?.();
    }
  };
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret, fetch: recordingFetch, ...more });
  return { client, sent, outcomes: () => sent.map(({ outcome }) => outcome) };
}

const throughProxy = () => ({ baseUrl: `http://127.0.0.1:${proxy.port}/` });
const isCreation = (bytes: Buffer) => bytes.toString('latin1').startsWith('POST ');

/** Waits for a request to fail, and gives its error. */
async function errorOf(request: Promise<unknown>): Promise<LeadIntakeError> {
  const error = await request.then(
    (answer) => new Error(`it has not failed, but answered ${JSON.stringify(answer)}`),
    (error) => error,
  );
  if (!(error instanceof LeadIntakeError)) throw error;
  return error;
}

describe('creating', () => {
  test('gives the lead and the key that stands for it, under which the same creation gives it again', async () => {
    const studio = await service.aStudioWithKey();
    const { client } = clientOf(studio);
    const data = capture({ sourceId: studio.sourceId, note: 'Asks for a trial.' });

    const created = await client.createLead(data);

    expect(expectLead(created.lead)).toMatchObject({ displayName: data.displayName, note: data.note, stage: 'new' });
    expect(created).toMatchObject({ replayed: false });
    const { idempotencyKey } = created;
    expect(await client.createLead(data, { idempotencyKey })).toEqual({ ...created, replayed: true });
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });

  test('makes another key for each call', async () => {
    const { client } = clientOf(await service.aStudioWithKey());
    const keys = await Promise.all(times(3, async () => (await client.createLead(capture())).idempotencyKey));
    expect(new Set(keys).size).toBe(3);
  });

  test('makes one lead when the reply is lost after the write, with one key in all attempts', async () => {
    const studio = await service.aStudioWithKey();
    const { client, sent } = clientOf(studio, throughProxy());
    proxy.loseReplies({ of: isCreation, count: 2 });

    const { replayed, idempotencyKey } = await client.createLead(capture());

    expect(proxy.lost()).toBe(2);
    expect(replayed).toBe(true);
    expect(sent).toEqual(['none', 'none', 201].map((outcome) => ({ key: idempotencyKey, outcome })));
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });

  test('that never hears of its outcome says so, and carries the key with which it is resumed', async () => {
    const studio = await service.aStudioWithKey();
    const { client } = clientOf(studio, { ...throughProxy(), deadlineMs: 4000 });
    const data = capture();
    proxy.loseReplies({ of: isCreation, count: Number.POSITIVE_INFINITY });

    const error = await errorOf(client.createLead(data));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'unknown', idempotencyKey: expect.any(String), cause: expect.any(Error) });
    expect(error.attempts).toBeGreaterThan(1);
    expect(error.message).toContain(error.idempotencyKey);
    expect(await service.countLeads(studio.studioId)).toBe(1);

    proxy.heal();
    const { idempotencyKey = '' } = error;
    expect(await client.createLead(data, { idempotencyKey })).toMatchObject({ replayed: true, idempotencyKey });
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });

  test('goes on while the core is away, until it is back', async () => {
    const studio = await service.aStudioWithKey();
    const { client, outcomes } = clientOf(studio, {
      afterAttempt: async () => {
        if (outcomes().length === 1) await service.startCore();
      },
    });
    await service.stopCore();

    await client.createLead(capture());

    expect(outcomes().at(0)).toBe(503);
    expect(outcomes().at(-1)).toBe(201);
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });
});

describe('whether it was written', () => {
  /** Too little to wait a second and try again. */
  const settings = { deadlineMs: 2000 };

  test('is no when nothing could be sent', async () => {
    const gone = await startProxy('127.0.0.1', 1);
    await gone.stop();
    const { client } = clientOf({ secret: 'any' }, { ...settings, baseUrl: `http://127.0.0.1:${gone.port}` });

    const error = await errorOf(client.createLead(capture()));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'no', idempotencyKey: expect.any(String) });
  });

  test('is no when requests cannot be counted, and unknown when the service is away', async () => {
    const uncounted = await anOwnService({ gateway: { REDIS_URL: 'redis://127.0.0.1:1' } });
    const { client } = clientOf(await uncounted.aStudioWithKey(), { ...settings, baseUrl: uncounted.url });

    expect(await errorOf(client.createLead(capture()))).toMatchObject({
      code: 'integration_rate_unavailable',
      retryAfterSeconds: 1,
      written: 'no',
    });
    await uncounted.stopCore();
    expect(await errorOf(client.createLead(capture()))).toMatchObject({
      code: 'integration_unavailable',
      status: 503,
      retryAfterSeconds: 1,
      written: 'unknown',
    });
    await uncounted.startCore();
  });

  test('stays unknown when a later attempt is refused for another reason', async () => {
    const studio = await service.aStudioWithKey();
    const { client, outcomes } = clientOf(studio, { ...throughProxy(), afterAttempt: () => revoke(studio) });
    proxy.loseReplies({ of: isCreation });

    const error = await errorOf(client.createLead(capture()));

    expect(outcomes()).toEqual(['none', 401]);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ code: 'integration_key_invalid', written: 'unknown' });
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });

  test('is no when a later attempt is refused although the service has looked for the key', async () => {
    const studio = await service.aStudioWithKey();
    const { client: other } = clientOf(studio);
    const data = capture();
    await other.createLead(data);
    const { client, outcomes } = clientOf(studio, throughProxy());
    proxy.loseReplies({ of: isCreation });

    const error = await errorOf(client.createLead(data));

    expect(outcomes()).toEqual(['none', 409]);
    expect(error).toMatchObject({ code: 'integration_lead_already_open', written: 'no' });
  });

  test('is no for requests that read', async () => {
    const { client } = clientOf(await service.aStudioWithKey(), { ...throughProxy(), ...settings });
    proxy.loseReplies({ of: () => true, count: Number.POSITIVE_INFINITY });
    expect(await errorOf(client.listLeads())).toMatchObject({ written: 'no', idempotencyKey: undefined });
    proxy.heal();
  });

  const revoke = ({ studioId, memberId, apiKeyId }: StudioWithKey) =>
    service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });
});

describe('a quota that is used up', () => {
  test('is waited for, as long as the service asks', async () => {
    const scarce = await anOwnService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '2' } });
    const { client, outcomes } = clientOf(await scarce.aStudioWithKey(), { baseUrl: scarce.url });

    // On a slow machine the quota may be whole again before it is asked for a second time.
    do await client.createLead(capture());
    while (!outcomes().includes(429));

    // A retry that comes too early is refused again.
    expect(outcomes().slice(-3)).toEqual([201, 429, 201]);
  });

  test('is told at once when time would be up before', async () => {
    const scarce = await anOwnService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3600' } });
    const { client, outcomes } = clientOf(await scarce.aStudioWithKey(), { baseUrl: scarce.url });
    await client.createLead(capture());

    const error = (await errorOf(client.createLead(capture()))) as ProblemError;

    expect(error).toMatchObject({ code: 'integration_rate_limited', status: 429, written: 'no' });
    expect(error.retryAfterSeconds).toBeGreaterThan(3000);
    expect(outcomes()).toEqual([201, 429]);
  });
});

describe('a refusal', () => {
  test('of a contact that has an open lead is an error of its own, and names the lead to whom may read', async () => {
    const studio = await service.aStudioWithKey();
    const { client, outcomes } = clientOf(studio);
    const data = capture();
    const { lead } = await client.createLead(data);

    const error = await errorOf(client.createLead(data));

    expect(error).toBeInstanceOf(LeadAlreadyOpenError);
    expect(error).toMatchObject({ existingLeadId: lead.id, status: 409, written: 'no', name: 'LeadAlreadyOpenError' });
    expect(outcomes()).toEqual([201, 409]);

    const writer = await service.aStudioWithKey({ scopes: [ApiKeyScope.LEADS_CREATE] });
    const { client: blind } = clientOf(writer);
    await blind.createLead(data);
    const blindError = await errorOf(blind.createLead(data));
    expect(blindError).toBeInstanceOf(LeadAlreadyOpenError);
    expect(blindError).toMatchObject({ existingLeadId: undefined });
  });

  test('of other data under a used key is an error of its own', async () => {
    const { client } = clientOf(await service.aStudioWithKey());
    const { idempotencyKey } = await client.createLead(capture());

    const error = await errorOf(client.createLead(capture(), { idempotencyKey }));

    expect(error).toBeInstanceOf(IdempotencyConflictError);
    expect(error).toMatchObject({ code: 'integration_idempotency_conflict', idempotencyKey, written: 'no' });
  });

  test('of a request says everything that the service says, and is not repeated', async () => {
    const { client, outcomes } = clientOf(await service.aStudioWithKey());

    const error = (await errorOf(
      client.createLead(capture({ displayName: '', note: '' }), { idempotencyKey: 'x' }),
    )) as ProblemError;

    expect(error).toMatchObject({
      name: 'ProblemError',
      code: 'integration_invalid_request',
      status: 400,
      type: expect.stringMatching(/^https:.*\/integration_invalid_request$/),
      title: 'The request is not valid.',
      requestId: expect.stringMatching(/./),
      retryAfterSeconds: undefined,
      attempts: 1,
      written: 'no',
    });
    expect(Object.keys(error.fields).sort()).toEqual(['Idempotency-Key', 'displayName', 'note']);
    expect(outcomes()).toEqual([400]);
  });

  test.each<[string, string, (client: ReturnType<typeof clientOf>['client']) => Promise<unknown>]>([
    ['an unknown lead', 'integration_lead_not_found', (client) => client.getLead(randomUUID())],
    ['what is no id', 'integration_invalid_request', (client) => client.getLead('../../x?y')],
    ['a cursor that is none', 'integration_invalid_request', (client) => client.listLeads({ cursor: 'x' })],
  ])('reaches who reads: %s', async (_, code, request) => {
    const { client } = clientOf(await service.aStudioWithKey());
    expect(await errorOf(request(client))).toMatchObject({ code });
  });
});

describe('giving up', () => {
  test('before anything is sent sends nothing', async () => {
    const { client, sent } = clientOf(await service.aStudioWithKey());
    const reason = new Error('the visitor is gone');

    const error = await errorOf(client.createLead(capture(), { signal: AbortSignal.abort(reason) }));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'no', cause: reason, attempts: 0 });
    expect(sent).toEqual([]);
  });

  // Whatever a caller gives as its reason.
  test.each([new Error('the visitor is gone'), null])(
    'while the answer is awaited leaves it open whether the lead was written: %s',
    async (reason) => {
      const forever = { attemptTimeoutMs: 3_600_000, deadlineMs: 3_600_000 };
      const { client } = clientOf(await service.aStudioWithKey(), { ...throughProxy(), ...forever });
      proxy.silence();
      const controller = new AbortController();

      const failing = errorOf(client.createLead(capture(), { signal: controller.signal }));
      setTimeout(() => controller.abort(reason), 50);

      expect(await failing).toMatchObject({ written: 'unknown', cause: reason, attempts: 1 });
      proxy.heal();
    },
  );

  test('while it waits for the next attempt ends the wait', async () => {
    const scarce = await anOwnService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3600' } });
    const controller = new AbortController();
    const { client, outcomes } = clientOf(await scarce.aStudioWithKey(), {
      baseUrl: scarce.url,
      deadlineMs: 7_200_000,
      afterAttempt: async () => {
        if (outcomes().includes(429)) setTimeout(() => controller.abort(), 50);
      },
    });
    await client.createLead(capture());

    const error = await errorOf(client.createLead(capture(), { signal: controller.signal }));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'no', attempts: 1 });
  });

  test('on an attempt that gets no answer begins another one', async () => {
    const studio = await service.aStudioWithKey();
    const { client, outcomes } = clientOf(studio, { ...throughProxy(), attemptTimeoutMs: 500 });
    proxy.loseReplies({ of: isCreation, by: 'silence' });

    expect(await client.createLead(capture())).toMatchObject({ replayed: true });
    expect(outcomes()).toEqual(['none', 201]);
    proxy.heal();
  });
});

describe('what is not from the service', () => {
  /** Something on the way to the service, which answers in its place. */
  async function aWall(...answers: readonly [status: number, headers: Record<string, string>, body: string][]) {
    const arrived: string[] = [];
    const server = createServer((request, response) => {
      arrived.push(`${request.method} ${request.url}`);
      const [status, headers, body] = answers[Math.min(arrived.length, answers.length) - 1] ?? [500, {}, ''];
      response.writeHead(status, headers).end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close().closeAllConnections());
    return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrived };
  }
  const html = { 'content-type': 'text/html' };
  const lead = { id: randomUUID() };

  test('is repeated when it may be over later', async () => {
    const { baseUrl, arrived } = await aWall(
      [502, { ...html, 'retry-after': '0' }, '<p>Bad gateway'],
      [200, html, '<p>Sign in to the network'],
      [200, html, JSON.stringify({ lead: { id: 'a sign-in page' } })],
      [201, { 'content-type': 'application/json' }, JSON.stringify({ lead })],
    );
    const { client } = clientOf({ secret: 'any' }, { baseUrl });

    expect(await client.createLead(capture())).toMatchObject({ lead });
    expect(arrived).toHaveLength(4);
  });

  test.each([
    [403, html],
    [302, { location: '/elsewhere' }],
  ])('is not repeated nor followed when it says no, and tells nothing of the lead: %i', async (status, headers) => {
    const { baseUrl, arrived } = await aWall([status, headers, '<p>No']);
    const { client } = clientOf({ secret: 'any' }, { baseUrl });

    const error = await errorOf(client.createLead(capture()));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'unknown', attempts: 1 });
    expect(`${error.cause}`).toContain(`${status}`);
    expect(arrived).toEqual(['POST /v1/integrations/leads']);
  });
});

test('an answer that unpacks to more than 4 MiB is none, and is not unpacked to its end', async () => {
  const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
  const server = createServer((_, response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createLeadIntakeClient({ baseUrl, apiKey: 'lik_any', deadlineMs: 1000 });

  const error = await errorOf(client.createLead(capture()));

  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({ written: 'unknown', cause: new Error('the answer 201 is longer than 4 MiB') });
});

describe('reading', () => {
  test('gives a lead as it stands', async () => {
    const studio = await service.aStudioWithKey();
    const { client } = clientOf(studio);
    const { lead } = await client.createLead(capture());
    await service.leads.changeLeadStage({ studioId: studio.studioId, leadId: lead.id, stage: LeadStage.WON });

    const read = await client.getLead(lead.id);

    expect(read).toEqual({ ...lead, stage: 'won', updatedAt: read.updatedAt });
  });

  test('gives all leads, newest first, page by page as they are asked for', async () => {
    const { client, sent } = clientOf(await service.aStudioWithKey());
    const ids: string[] = [];
    for (const _ of times(7, () => 0)) ids.unshift((await client.createLead(capture())).lead.id);
    const before = sent.length;

    const listed: string[] = [];
    for await (const { id } of client.allLeads({ limit: 3 })) {
      listed.push(id);
      expect(sent.length - before).toBe(Math.ceil(listed.length / 3));
    }

    expect(listed).toEqual(ids);
    const page = await client.listLeads({ limit: 5 });
    expect(page.leads.map(({ id }) => id)).toEqual(ids.slice(0, 5));
    expect((await client.listLeads({ cursor: page.nextCursor ?? '' })).leads).toHaveLength(2);
  });

  test('of no leads ends at once', async () => {
    const { client } = clientOf(await service.aStudioWithKey());
    for await (const lead of client.allLeads()) throw new Error(`there is ${lead.id}`);
  });

  test('goes on after a page whose reply was lost', async () => {
    const { client } = clientOf(await service.aStudioWithKey(), throughProxy());
    for (const _ of times(4, () => 0)) await client.createLead(capture());
    proxy.loseReplies({ of: (bytes) => bytes.includes('cursor=') });

    const listed: string[] = [];
    for await (const { id } of client.allLeads({ limit: 2 })) listed.push(id);

    expect(proxy.lost()).toBe(1);
    expect(new Set(listed).size).toBe(4);
  });
});

test.each([
  ['an address', { baseUrl: 'nowhere' }],
  ['a key', { apiKey: 'lik_\nx' }],
])('what cannot be %s is refused before anything is sent', (_, options) => {
  expect(() => clientOf({ secret: 'any' }, options)).toThrow(TypeError);
});

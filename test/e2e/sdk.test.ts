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
  type ProblemError,
} from '../../sdk/index.ts';
import { times } from '../support/builders.ts';
import { aService, expectLead, type StudioWithKey } from '../support/service.ts';
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

// sdk/conformance covers the retries, the deadlines, and what is known of a write (test/e2e/client-conformance.test.ts). These tests
// cover the client's own types against a real service.

/** An attempt of a client: its idempotency key, and its outcome. */
interface Sent {
  readonly key: string | null;
  readonly outcome: number | 'none';
}

/** A client of a service, and the attempts that it makes. */
function clientOf({ secret }: Pick<StudioWithKey, 'secret'>, options: Partial<LeadIntakeClientOptions> = {}) {
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
    }
  };
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret, fetch: recordingFetch, ...options });
  return { client, sent, outcomes: () => sent.map(({ outcome }) => outcome) };
}

const throughProxy = () => ({ baseUrl: `http://127.0.0.1:${proxy.port}/` });
const isCreation = (bytes: Buffer) => bytes.toString('latin1').startsWith('POST ');

/** Returns the error of a request that has to fail. */
async function errorOf(request: Promise<unknown>): Promise<LeadIntakeError> {
  const error = await request.then(
    (answer) => new Error(`it has not failed, but answered ${JSON.stringify(answer)}`),
    (error) => error,
  );
  if (!(error instanceof LeadIntakeError)) throw error;
  return error;
}

describe('creating', () => {
  test('returns the lead and its idempotency key, under which a repetition returns the same lead', async () => {
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

  test('creates one lead when the response is lost after the write, with one key in all attempts', async () => {
    const studio = await service.aStudioWithKey();
    const { client, sent } = clientOf(studio, throughProxy());
    proxy.loseReplies({ of: isCreation, count: 2 });

    const { replayed, idempotencyKey } = await client.createLead(capture());

    expect(proxy.lost()).toBe(2);
    expect(replayed).toBe(true);
    expect(sent).toEqual(['none', 'none', 201].map((outcome) => ({ key: idempotencyKey, outcome })));
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });
});

describe('a refusal', () => {
  test('for a contact with an open lead has its own error class, and has the id of the lead when the key may read', async () => {
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

  test('for other data under a used key has its own error class', async () => {
    const { client } = clientOf(await service.aStudioWithKey());
    const { idempotencyKey } = await client.createLead(capture());

    const error = await errorOf(client.createLead(capture(), { idempotencyKey }));

    expect(error).toBeInstanceOf(IdempotencyConflictError);
    expect(error).toMatchObject({ code: 'integration_idempotency_conflict', idempotencyKey, written: 'no' });
  });

  test('of a request has everything that the service reports, and is not retried', async () => {
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
  ])('of a read throws: %s', async (_, code, request) => {
    const { client } = clientOf(await service.aStudioWithKey());
    expect(await errorOf(request(client))).toMatchObject({ code });
  });
});

describe('giving up', () => {
  test('before the first attempt sends nothing', async () => {
    const { client, sent } = clientOf(await service.aStudioWithKey());
    const reason = new Error('the visitor is gone');

    const error = await errorOf(client.createLead(capture(), { signal: AbortSignal.abort(reason) }));

    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ written: 'no', cause: reason, attempts: 0 });
    expect(sent).toEqual([]);
  });

  // Regardless of the reason that a caller gives.
  test.each([new Error('the visitor is gone'), null])(
    'during an attempt leaves it unknown whether the lead was written: %s',
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
});

test('a response that decompresses to more than 4 MiB is rejected before its end', async () => {
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
  test('returns the current state of a lead', async () => {
    const studio = await service.aStudioWithKey();
    const { client } = clientOf(studio);
    const { lead } = await client.createLead(capture());
    await service.leads.changeLeadStage({ studioId: studio.studioId, leadId: lead.id, stage: LeadStage.WON });

    const read = await client.getLead(lead.id);

    expect(read).toEqual({ ...lead, stage: 'won', updatedAt: read.updatedAt });
  });

  test('returns all leads, newest first, and reads each page on demand', async () => {
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
});

test.each([
  ['an address', { baseUrl: 'nowhere' }],
  ['a key', { apiKey: 'lik_\nx' }],
])('an invalid option is refused before anything is sent: %s', (_, options) => {
  expect(() => clientOf({ secret: 'any' }, options)).toThrow(TypeError);
});

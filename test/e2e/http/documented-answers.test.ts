import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { PROBLEMS } from '../../../gateway/problems.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DOCUMENTED_ANSWERS } from '../../support/documented.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import {
  aCapture,
  anEmail,
  aService,
  expectProblem,
  LEADS,
  type ProblemJson,
  readLead,
  type Service,
} from '../../support/service.ts';

// The first service works; each of the others is broken in a different way.
const service = aService();
const strict = aService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3600' } });
const uncounted = aService({ gateway: { REDIS_URL: 'redis://127.0.0.1:1' } });
/** A server in place of the core that understands no request. */
const otherServer = createServer((_request, response) => response.writeHead(400).end('no such token'));
beforeAll(async () => void (await once(otherServer.listen(0, '127.0.0.1'), 'listening')));
afterAll(() => void otherServer.close());
const misdirected = aService(() => ({
  gateway: { CORE_URL: `http://127.0.0.1:${(otherServer.address() as AddressInfo).port}` },
}));
const coreless = aService();
beforeAll(() => coreless.stopCore());

/** How to call an operation. */
interface Operation {
  readonly call: (service: Service, secret: string) => Promise<Response>;
  /** Its request line. */
  readonly line: string;
  /** A scope that the operation does not need. */
  readonly otherScope: ApiKeyScope;
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  createLead: {
    call: ({ post }, secret) => post(secret, aCapture()),
    line: `POST ${LEADS} HTTP/1.1`,
    otherScope: ApiKeyScope.LEADS_READ,
  },
  getLead: {
    call: ({ get }, secret) => get(secret, `/${randomUUID()}`),
    line: `GET ${LEADS}/${randomUUID()} HTTP/1.1`,
    otherScope: ApiKeyScope.LEADS_CREATE,
  },
  listLeads: {
    call: ({ get }, secret) => get(secret),
    line: `GET ${LEADS} HTTP/1.1`,
    otherScope: ApiKeyScope.LEADS_CREATE,
  },
};

/** A request for every response, by operation, status and code, or by status and code for all operations. */
const REQUESTS_BY_RESPONSE: Readonly<Record<string, (operation: Operation) => Promise<Response>>> = {
  'createLead 201': async () => service.post(await aSecret(), aCapture()),
  'getLead 200': async () => {
    const secret = await aSecret();
    const { id } = await readLead(await service.post(secret, aCapture()), 201);
    return service.get(secret, `/${id}`);
  },
  'listLeads 200': async () => service.get(await aSecret()),
  'createLead 400 integration_invalid_request': async () =>
    service.post(await aSecret(), aCapture({ displayName: '', contact: anEmail('grace') })),
  'createLead 400 integration_source_invalid': async () =>
    service.post(await aSecret(), aCapture({ sourceId: randomUUID() })),
  'createLead 409 integration_idempotency_conflict': async () => {
    const [secret, key] = [await aSecret(), { 'idempotency-key': randomUUID() }];
    await service.post(secret, aCapture(), key);
    return service.post(secret, aCapture(), key);
  },
  'createLead 409 integration_lead_already_open': async () => {
    const [secret, contact] = [await aSecret(), anEmail()];
    await service.post(secret, aCapture({ contact }));
    return service.post(secret, aCapture({ contact }));
  },
  'getLead 400 integration_invalid_request': async () => service.get(await aSecret(), '/42'),
  'getLead 404 integration_lead_not_found': async () => service.get(await aSecret(), `/${randomUUID()}`),
  'listLeads 400 integration_invalid_request': async () => service.get(await aSecret(), '?limit=0'),

  '401 integration_key_invalid': ({ call }) => call(service, ''),
  '402 subscription_suspended': async ({ call }) => {
    const { studioId: id, secret } = await service.aStudioWithKey();
    await service.directory.putStudio({ studio: { id, status: StudioStatus.SUSPENDED } });
    return call(service, secret);
  },
  '403 integration_scope_forbidden': async ({ call, otherScope }) => {
    const { secret } = await service.aStudioWithKey({ scopes: [otherScope] });
    return call(service, secret);
  },
  '403 integration_issuer_forbidden': async ({ call }) => {
    const { studioId, memberId: id, secret } = await service.aStudioWithKey();
    await service.directory.putMember({ member: { studioId, id, role: MemberRole.STAFF } });
    return call(service, secret);
  },
  '408 integration_invalid_request': ({ line }) => rawRequest(service.url, `${line}\r\nHost: x\r\nX-Half`),
  '429 integration_rate_limited': async ({ call }) => {
    const { secret } = await strict.aStudioWithKey();
    await call(strict, secret);
    return call(strict, secret);
  },
  '431 integration_invalid_request': ({ line }) =>
    rawRequest(service.url, lines(line, 'Host: x', `X-Long: ${'x'.repeat(20_000)}`, '')),
  '500 internal_error': ({ call }) => call(misdirected, newKeySecret()),
  '503 integration_rate_unavailable': async ({ call }) => {
    const { secret } = await uncounted.aStudioWithKey();
    return call(uncounted, secret);
  },
  '503 integration_unavailable': ({ call }) => call(coreless, newKeySecret()),
};

const aSecret = async () => (await service.aStudioWithKey()).secret;

// `service` and `rawRequest` fail every test that receives an undocumented response.
// @proves leads-30
describe.concurrent('every documented response is returned, and equals its example', () => {
  test.each(DOCUMENTED_ANSWERS)(
    '$operationId returns its documented response $status $code',
    {
      tags: ['1.media-types', '2.5.type', '2.5.title', '2.5.status', '2.5.code', '2.5.detail', '2.5.requestId'],
    },
    async ({ operationId, status, code, example }) => {
      const operation = OPERATIONS[operationId];
      const answer = code === undefined ? `${status}` : `${status} ${code}`;
      const request = REQUESTS_BY_RESPONSE[`${operationId} ${answer}`] ?? REQUESTS_BY_RESPONSE[answer];
      if (!operation || !request) throw new Error('no request is defined for it');

      const response = await request(operation);

      if (code === undefined) expect(response.status).toBe(status);
      else expect(comparable(await expectProblem(response, status, code))).toEqual(comparable(example as ProblemJson));
    },
  );
});

test('an internal_error contains no details of the fault', { tags: ['2.5.discreet', '7.internal_error'] }, async () => {
  const { secret } = await misdirected.aStudioWithKey();
  const { requestId, ...problem } = await expectProblem(await misdirected.get(secret), 500, 'internal_error', []);
  expect(requestId).toBeDefined();
  expect(JSON.stringify(problem)).not.toMatch(/token|core|400|connect/i);
});

test('no two codes share a title', () => {
  const titles = Object.values(PROBLEMS).map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

/** Returns the body of an error without the parts that differ between responses. */
function comparable({ requestId, detail, ...body }: ProblemJson) {
  return { ...body, detail: detail?.replaceAll(/\d+/g, 'N') };
}

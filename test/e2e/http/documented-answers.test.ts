import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DOCUMENTED_ANSWERS } from '../../support/documented.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, anEmail, aService, LEADS, leadOf, type ProblemJson, type Service } from '../../support/service.ts';

// Each is broken in its own way, but for the first.
const service = aService();
const strict = aService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '3600' } });
const uncounted = aService({ gateway: { REDIS_URL: 'redis://127.0.0.1:1' } });
const misled = aService({ gateway: { CORE_TOKEN: 'not the one that the core was given' } });
const coreless = aService();
beforeAll(() => coreless.stopCore());

/** How to call an operation, whatever becomes of it. */
interface Operation {
  readonly call: (service: Service, secret: string) => Promise<Response>;
  /** Its request line. */
  readonly line: string;
  /** The scope that it does not need. */
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

/** A way to every answer: the operation's own one by its name, status and code, else that of all by status and code. */
const WAYS: Readonly<Record<string, (operation: Operation) => Promise<Response>>> = {
  'createLead 201': async () => service.post(await aSecret(), aCapture()),
  'getLead 200': async () => {
    const secret = await aSecret();
    const { id } = await leadOf(await service.post(secret, aCapture()), 201);
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
  '500 internal_error': ({ call }) => call(misled, newKeySecret()),
  '503 integration_rate_unavailable': async ({ call }) => {
    const { secret } = await uncounted.aStudioWithKey();
    return call(uncounted, secret);
  },
  '503 integration_unavailable': ({ call }) => call(coreless, newKeySecret()),
};

const aSecret = async () => (await service.aStudioWithKey()).secret;

// What is not documented fails every test that gets it: `service` and `rawRequest` see to that.
describe.concurrent('every documented answer is given, and looks like its example', () => {
  test.each(DOCUMENTED_ANSWERS)('$operationId: $status $code', async ({ operationId, status, code, example }) => {
    const operation = OPERATIONS[operationId];
    const answer = code === undefined ? `${status}` : `${status} ${code}`;
    const way = WAYS[`${operationId} ${answer}`] ?? WAYS[answer];
    if (!operation || !way) throw new Error('there is no known way to it');

    const response = await way(operation);

    const body = (await response.json()) as ProblemJson;
    expect({ status: response.status, code: body.code }).toEqual({ status, code });
    if (code !== undefined) expect(comparable(body)).toEqual(comparable(example as ProblemJson));
  });
});

/** An error's body without what differs from time to time. */
function comparable({ requestId, detail, ...body }: ProblemJson) {
  return { ...body, detail: detail?.replaceAll(/\d+/g, 'N') };
}

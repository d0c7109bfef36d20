import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { aCapture, aService, BOTH_SCOPES, expectProblem, LEADS } from '../../support/service.ts';

/** Less than that of a key, so that the headers of another key of the studio say what was counted. */
const STUDIO_LIMIT = 100;

const service = aService({ gateway: { QUOTA_STUDIO_LIMIT: `${STUDIO_LIMIT}`, QUOTA_WINDOW_SECONDS: '3600' } });

const BAD = { ...aCapture(), extra: 1 };

/** Posts a creation whose body is sent once something was done after the gateway has admitted the request. */
async function postLate(secret: string, body: unknown, meanwhile: () => Promise<unknown>): Promise<Response> {
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
    expect: '100-continue',
  };
  const call = request(service.url + LEADS, { method: 'POST', headers });
  call.flushHeaders();
  await once(call, 'continue');
  await meanwhile();
  call.end(JSON.stringify(body));
  const [response] = await once(call, 'response');
  return new Response(await text(response), { status: response.statusCode, headers: response.headers });
}

type Answer = readonly [status: number, code: string];
const CREATED: Answer = [201, ''];
const REVOKED: Answer = [401, 'integration_key_invalid'];
const FORBIDDEN: Answer = [403, 'integration_scope_forbidden'];
const INVALID: Answer = [400, 'integration_invalid_request'];
const LIMITED: Answer = [429, 'integration_rate_limited'];
const NOT_FOUND: Answer = [404, 'integration_lead_not_found'];

type Send = (secret: string, revoke: () => Promise<unknown>) => Promise<Response>;

/** Lets the key be revoked before the request comes. */
const after =
  (send: (secret: string) => Promise<Response>): Send =>
  async (secret, revoke) => {
    await revoke();
    return send(secret);
  };

const create = after((secret) => service.post(secret, aCapture()));

/** Kinds of requests, and the answers with a valid key, with one that is revoked, and with a revoked one that the gateway knew. */
const REQUESTS: readonly { name: string; send: Send; valid: Answer; revoked: Answer; revokedKnown: Answer }[] = [
  { name: 'no fault', send: create, valid: CREATED, revoked: REVOKED, revokedKnown: REVOKED },
  { name: 'missing scope', send: create, valid: FORBIDDEN, revoked: REVOKED, revokedKnown: REVOKED },
  { name: 'quota used up', send: create, valid: LIMITED, revoked: REVOKED, revokedKnown: LIMITED },
  {
    name: 'bad body',
    send: after((secret) => service.post(secret, BAD)),
    valid: INVALID,
    revoked: REVOKED,
    revokedKnown: REVOKED,
  },
  {
    name: 'too large body',
    send: after((secret) => service.post(secret, aCapture({ note: 'x'.repeat(40_000) }))),
    valid: INVALID,
    revoked: REVOKED,
    revokedKnown: REVOKED,
  },
  {
    name: 'unknown lead',
    send: after((secret) => service.get(secret, `/${randomUUID()}`)),
    valid: NOT_FOUND,
    revoked: REVOKED,
    revokedKnown: REVOKED,
  },
  {
    name: 'limit and cursor that are not valid',
    send: after((secret) => service.get(secret, '?limit=0&cursor=none')),
    valid: INVALID,
    revoked: REVOKED,
    revokedKnown: REVOKED,
  },
  // The gateway admits it with a valid key, which is revoked before the body comes.
  {
    name: 'late body',
    send: (secret, revoke) => postLate(secret, aCapture(), revoke),
    valid: CREATED,
    revoked: REVOKED,
    revokedKnown: REVOKED,
  },
  // The core has validated the key since the request came, so it is not asked again about a fault.
  {
    name: 'late bad body',
    send: (secret, revoke) => postLate(secret, BAD, revoke),
    valid: INVALID,
    revoked: INVALID,
    revokedKnown: REVOKED,
  },
];

const cases = REQUESTS.flatMap(({ name, send, valid, revoked, revokedKnown }) => [
  { name, send, isKnown: false, isRevoked: false, kind: 'a valid key', answer: valid },
  { name, send, isKnown: true, isRevoked: false, kind: 'a valid key that the gateway knows', answer: valid },
  { name, send, isKnown: false, isRevoked: true, kind: 'a revoked key', answer: revoked },
  { name, send, isKnown: true, isRevoked: true, kind: 'a revoked key that the gateway knows', answer: revokedKnown },
]);

test.each(cases)(
  'a request is answered, and counted, by the order of checks: $name, with $kind',
  { tags: ['7.order', '8.counted', '8.quota-headers'] },
  async ({ name, send, isKnown, isRevoked, answer: [status, code] }) => {
    const scopes = name === 'missing scope' ? [ApiKeyScope.LEADS_READ] : BOTH_SCOPES;
    const key = await service.aStudioWithKey({ scopes });
    const { studioId, memberId } = key;
    let { secret } = key;
    const expireTime = timestampFromMs(Date.now() + DAY_MS);
    const other = { studioId, memberId, name: 'Other', scopes: [...BOTH_SCOPES], expireTime };
    const { secret: otherSecret } = await service.apiKeys.createApiKey(other);
    const isUsedUp = name === 'quota used up';
    if (isUsedUp) await service.directory.putApiKeyQuota({ ...key, quotaLimit: 1 });
    if (isKnown || isUsedUp) expect((await service.get(secret)).status).toBe(200);
    // The key keeps its quota.
    if (isUsedUp && !isKnown) ({ secret } = await service.apiKeys.replaceApiKey(key));
    const countedBefore = Number(isKnown || isUsedUp);

    const response = await send(secret, async () => isRevoked && service.apiKeys.revokeApiKey(key));

    if (code !== '') await expectProblem(response, status, code);
    expect(response.status).toBe(status);
    const isCounted = ![401, 403, 429].includes(status);
    expect([response.headers.has('ratelimit'), response.headers.has('ratelimit-policy')]).toEqual(
      isCounted || status === 429 ? [true, true] : [false, false],
    );
    const left = (await service.get(otherSecret)).headers.get('ratelimit');
    expect(left).toContain(`;r=${STUDIO_LIMIT - countedBefore - Number(isCounted) - 1};`);
    expect(await service.countLeads(studioId)).toBe(Number(status === 201));
  },
);

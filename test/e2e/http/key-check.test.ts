import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../support/builders.ts';
import { aCapture, aService, BOTH_SCOPES, expectProblem, LEADS } from '../../support/service.ts';

/** The quota of a studio is lower than a key's, so the headers of another key show which requests were counted. */
const STUDIO_LIMIT = 100;

const service = aService({ gateway: { QUOTA_STUDIO_LIMIT: `${STUDIO_LIMIT}`, QUOTA_WINDOW_SECONDS: '3600' } });

const BAD = { ...aCapture(), extra: 1 };

/** Posts a creation, whose body follows only after the gateway has admitted the request and `meanwhile` has ended. */
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
const INVALID: Answer = [400, 'integration_invalid_request'];

type Send = (secret: string, revoke: () => Promise<unknown>) => Promise<Response>;

/** Revokes the key before sending the request. */
const creation =
  (body: object): Send =>
  async (secret, revoke) => {
    await revoke();
    return service.post(secret, body);
  };

/**
 * Requests and their expected responses with a valid key, a revoked key, and a revoked key that the gateway knows.
 * check-order.test.ts tests other faults.
 */
const REQUESTS: readonly (readonly [name: string, Send, valid: Answer, revoked: Answer, revokedKnown: Answer])[] = [
  ['no fault', creation(aCapture()), CREATED, REVOKED, REVOKED],
  ['bad body', creation(BAD), INVALID, REVOKED, REVOKED],
  // The key is valid when the gateway admits the request, and revoked before the body arrives.
  ['late body', (secret, revoke) => postLate(secret, aCapture(), revoke), CREATED, REVOKED, REVOKED],
  // The core validated the key after the request arrived, so the gateway does not ask it again about a fault.
  ['late bad body', (secret, revoke) => postLate(secret, BAD, revoke), INVALID, INVALID, REVOKED],
];

const cases = REQUESTS.flatMap(([name, send, valid, revoked, revokedKnown]) => [
  { name, send, isKnown: false, isRevoked: false, kind: 'a valid key', answer: valid },
  { name, send, isKnown: true, isRevoked: false, kind: 'a valid key that the gateway knows', answer: valid },
  { name, send, isKnown: false, isRevoked: true, kind: 'a revoked key', answer: revoked },
  { name, send, isKnown: true, isRevoked: true, kind: 'a revoked key that the gateway knows', answer: revokedKnown },
]);

test.each(cases)(
  'a request is answered and counted by the order of checks: $name, with $kind',
  { tags: ['7.order', '8.counted', '8.quota-headers'] },
  async ({ send, isKnown, isRevoked, answer: [status, code] }) => {
    const key = await service.aStudioWithKey();
    const { studioId, memberId, secret } = key;
    const expireTime = timestampFromMs(Date.now() + DAY_MS);
    const other = { studioId, memberId, name: 'Other', scopes: [...BOTH_SCOPES], expireTime };
    const { secret: otherSecret } = await service.apiKeys.createApiKey(other);
    if (isKnown) expect((await service.get(secret)).status).toBe(200);

    const response = await send(secret, async () => isRevoked && service.apiKeys.revokeApiKey(key));

    if (code !== '') await expectProblem(response, status, code);
    expect(response.status).toBe(status);
    const isCounted = status !== 401;
    for (const header of ['ratelimit', 'ratelimit-policy']) expect(response.headers.has(header)).toBe(isCounted);
    const left = (await service.get(otherSecret)).headers.get('ratelimit');
    expect(left).toContain(`;r=${STUDIO_LIMIT - Number(isKnown) - Number(isCounted) - 1};`);
    expect(await service.countLeads(studioId)).toBe(Number(status === 201));
  },
);

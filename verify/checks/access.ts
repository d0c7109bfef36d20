import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { ProblemCode } from '../../gateway/problems.ts';
import { type Answer, type Api, aCapture } from '../api.ts';
import type { Check } from '../check.ts';
import { expectLeadIn, expectRefusalIn, expectValidProblem } from '../expectations.ts';

const KEY_INVALID = 'integration_key_invalid';

/** A request for each operation that would be invalid even with a valid key. */
const OPERATIONS: readonly ((api: Api, headers: Record<string, string | null>) => Promise<Answer>)[] = [
  (api, headers) => api.create({}, null, { headers }),
  (api, headers) => api.read('no-uuid', { headers }),
  (api, headers) => api.list('limit=0', { headers }),
];

/** Checks of authentication, and of the form of errors. */
export const ACCESS_CHECKS: readonly Check[] = [
  {
    title: 'a request without a key is refused with 401, whatever else is wrong with it',
    rules: ['5.1', '5.8', '7.integration_key_invalid', '7.order'],
    async run(api) {
      for (const operation of OPERATIONS) {
        expectRefusalIn(await operation(api, { authorization: null }), 401, KEY_INVALID);
      }
    },
  },
  {
    title: 'an unknown key is refused',
    rules: ['5.1', '5.8', '7.integration_key_invalid'],
    async run(api) {
      const unknown = randomBytes(32).toString('base64url');
      for (const value of [`Bearer ${unknown}`, `Bearer lik_${unknown}`, 'Bearer', `Basic ${unknown}`]) {
        for (const operation of OPERATIONS)
          expectRefusalIn(await operation(api, { authorization: value }), 401, KEY_INVALID);
      }
    },
  },
  {
    title: 'a cookie is not accepted as a key',
    rules: ['5.5'],
    async run(api) {
      const headers = { authorization: null, cookie: `session=${randomUUID()}` };
      for (const operation of OPERATIONS) expectRefusalIn(await operation(api, headers), 401, KEY_INVALID);
    },
  },
  {
    title: 'no response has a CORS header',
    rules: ['1.no-browser'],
    async run(api) {
      const origin = 'https://shop.example.com';
      const preflight = { origin, 'access-control-request-method': 'POST', authorization: null };
      const answers = [
        await api.list('limit=1', { headers: { origin } }),
        await api.create(aCapture(), randomUUID(), { headers: { origin } }),
        await api.list('', { headers: { origin, authorization: null } }),
        await api.send('OPTIONS', '/v1/integrations/leads', { headers: preflight }),
      ];
      for (const { headers } of answers) {
        const header = [...headers.keys()].find((name) => name.startsWith('access-control-'));
        assert.equal(header, undefined, `a response has the header ${header}`);
      }
    },
  },
  {
    title: 'the operations exist only under /v1',
    rules: ['9.version'],
    async run(api) {
      for (const path of ['/integrations/leads', '/v0/integrations/leads', '/v2/integrations/leads']) {
        const { status } = await api.send('GET', path);
        assert(status < 200 || status > 299, `${path} responds with status ${status}`);
      }
    },
  },
  {
    title: 'every error has the fields of the contract, each valid',
    rules: [
      '1.media-types',
      '2.5.type',
      '2.5.title',
      '2.5.status',
      '2.5.code',
      '2.5.detail',
      '2.5.fields',
      '2.5.requestId',
      '8.requestId',
    ],
    async run(api) {
      const [capture, key] = [aCapture(), randomUUID()];
      expectLeadIn(await api.create(capture, key), 201);
      const errors: readonly (readonly [Answer, status: number, code: ProblemCode])[] = [
        [await api.create({ wrong: 1 }), 400, 'integration_invalid_request'],
        [await api.create(aCapture({ sourceId: randomUUID() })), 400, 'integration_source_invalid'],
        [await api.list('', { headers: { authorization: null } }), 401, KEY_INVALID],
        [await api.read(randomUUID()), 404, 'integration_lead_not_found'],
        [await api.create({ ...capture, note: 'other' }, key), 409, 'integration_idempotency_conflict'],
        [await api.create(capture), 409, 'integration_lead_already_open'],
      ];
      for (const [answer, status, code] of errors) expectValidProblem(expectRefusalIn(answer, status, code), status);
      const ids = errors.map(([{ text }]) => JSON.parse(text).requestId);
      assert.equal(new Set(ids).size, ids.length, 'two requests have the same id');
    },
  },
];

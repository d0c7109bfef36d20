import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { type Answer, type Api, aCapture } from '../api.ts';
import type { Check } from '../check.ts';
import { checkProblem, leadOf, refusalOf } from '../expectations.ts';

const KEY_INVALID = 'integration_key_invalid';

/** The operations, with a request that would be refused for another reason too. */
const OPERATIONS: readonly ((api: Api, headers: Record<string, string | null>) => Promise<Answer>)[] = [
  (api, headers) => api.create({}, null, { headers }),
  (api, headers) => api.read('no-uuid', { headers }),
  (api, headers) => api.list('limit=0', { headers }),
];

/** Who gets in, and how errors look. */
export const ACCESS_CHECKS: readonly Check[] = [
  {
    title: 'without a key nothing is answered, whatever else is wrong with a request',
    rules: ['5.1', '5.8', '7.integration_key_invalid', '7.order'],
    async run(api) {
      for (const operation of OPERATIONS) {
        refusalOf(await operation(api, { authorization: null }), 401, KEY_INVALID);
      }
    },
  },
  {
    title: 'a key that nobody has opens nothing',
    rules: ['5.1', '5.8', '7.integration_key_invalid'],
    async run(api) {
      const unknown = randomBytes(32).toString('base64url');
      for (const value of [`Bearer ${unknown}`, `Bearer lik_${unknown}`, 'Bearer', `Basic ${unknown}`]) {
        for (const operation of OPERATIONS) refusalOf(await operation(api, { authorization: value }), 401, KEY_INVALID);
      }
    },
  },
  {
    title: 'a cookie is no key',
    rules: ['5.5'],
    async run(api) {
      const headers = { authorization: null, cookie: `session=${randomUUID()}` };
      for (const operation of OPERATIONS) refusalOf(await operation(api, headers), 401, KEY_INVALID);
    },
  },
  {
    title: 'no answer has a header that lets pages in a browser read it',
    rules: ['1.no-browser'],
    async run(api) {
      const origin = 'https://shop.example.com';
      const preflight = { origin, 'access-control-request-method': 'POST', authorization: null };
      const answers = [
        await api.list('limit=1', { headers: { origin } }),
        await api.create(aCapture(), randomUUID(), { headers: { origin } }),
        await api.list('', { headers: { origin, authorization: null } }),
        await api.ask('OPTIONS', '/v1/integrations/leads', { headers: preflight }),
      ];
      for (const { headers } of answers) {
        const header = [...headers.keys()].find((name) => name.startsWith('access-control-'));
        assert.equal(header, undefined, `an answer has the header ${header}`);
      }
    },
  },
  {
    title: 'the operations are under /v1 alone',
    rules: ['9.version'],
    async run(api) {
      for (const path of ['/integrations/leads', '/v0/integrations/leads', '/v2/integrations/leads']) {
        const { status } = await api.ask('GET', path);
        assert(status < 200 || status > 299, `${path} is answered with ${status}`);
      }
    },
  },
  {
    title: 'every error has the fields of the contract, each within its bounds',
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
      leadOf(await api.create(capture, key), 201);
      const errors: readonly (readonly [Answer, status: number, code: string])[] = [
        [await api.create({ wrong: 1 }), 400, 'integration_invalid_request'],
        [await api.create(aCapture({ sourceId: randomUUID() })), 400, 'integration_source_invalid'],
        [await api.list('', { headers: { authorization: null } }), 401, KEY_INVALID],
        [await api.read(randomUUID()), 404, 'integration_lead_not_found'],
        [await api.create({ ...capture, note: 'other' }, key), 409, 'integration_idempotency_conflict'],
        [await api.create(capture), 409, 'integration_lead_already_open'],
      ];
      for (const [answer, status, code] of errors) checkProblem(refusalOf(answer, status, code), status);
      const ids = errors.map(([{ text }]) => JSON.parse(text).requestId);
      assert.equal(new Set(ids).size, ids.length, 'two requests have one id');
    },
  },
];

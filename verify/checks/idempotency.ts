import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, aCapture } from '../api.ts';
import type { Check } from '../check.ts';
import { CONCURRENCY, concurrently, expectAddedLeads } from '../concurrently.ts';
import { expectLeadIn, expectRefusalIn } from '../expectations.ts';

const CONFLICT = 'integration_idempotency_conflict';

export const IDEMPOTENCY_CHECKS: readonly Check[] = [
  {
    title: 'a repeated request gets the original response, and no second lead',
    rules: ['4.1.1'],
    async run(api) {
      const [capture, key] = [aCapture({ note: 'once' }), randomUUID()];
      await expectAddedLeads(api, 1, async () => {
        const original = await api.create(capture, key);
        expectLeadIn(original, 201);
        for (let times = 0; times < 3; times += 1) expectSame(await api.create(capture, key), original);
      });
    },
  },
  {
    title: 'the order of properties does not matter for the same data',
    rules: ['4.1.1', '4.1.same-data'],
    async run(api) {
      const key = randomUUID();
      const { displayName, contact } = aCapture();
      const original = await api.create({ displayName, contact }, key);
      expectLeadIn(original, 201);
      const reordered = { contact: { value: contact.value, type: contact.type }, displayName };
      expectSame(await api.create(reordered, key), original);
      expectSame(await api.create({ ...reordered, note: null, sourceId: null }, key), original);
    },
  },
  {
    title: `${CONCURRENCY} equal concurrent requests get the same response, and one lead is written`,
    rules: ['4.1.1', '4.1.at-once'],
    async run(api) {
      const [capture, key] = [aCapture(), randomUUID()];
      await expectAddedLeads(api, 1, async () => {
        const [original, ...others] = await concurrently(() => api.create(capture, key));
        expectLeadIn(original as Answer, 201);
        for (const other of others) expectSame(other, original as Answer);
      });
    },
  },
  {
    title: 'the same Idempotency-Key with other data is a conflict, and nothing is written or changed',
    rules: ['4.1.2', '7.integration_idempotency_conflict'],
    async run(api) {
      const [capture, key] = [aCapture({ note: 'first' }), randomUUID()];
      const original = await api.create(capture, key);
      const { id } = expectLeadIn(original, 201);
      const { contact } = aCapture();
      await expectAddedLeads(api, 0, async () => {
        for (const other of [{ note: 'second' }, { note: null }, { displayName: 'Somebody else' }, { contact }]) {
          expectRefusalIn(await api.create({ ...capture, ...other }, key), 409, CONFLICT);
        }
      });
      assert.equal(expectLeadIn(await api.read(id), 200).note, 'first');
      expectSame(await api.create(capture, key), original);
    },
  },
  {
    title: `of ${CONCURRENCY} concurrent requests with one Idempotency-Key and different data, one creates a lead and the others conflict`,
    rules: ['4.1.2'],
    async run(api) {
      const key = randomUUID();
      await expectAddedLeads(api, 1, async () => {
        const answers = await concurrently(() => api.create(aCapture(), key));
        const created = answers.filter(({ status }) => status === 201);
        assert.equal(created.length, 1, `${created.length} leads were created`);
        for (const answer of answers) if (answer.status !== 201) expectRefusalIn(answer, 409, CONFLICT);
      });
    },
  },
  {
    title: 'an Idempotency-Key of a refused request stays free',
    rules: ['4.1.success'],
    async run(api) {
      const key = randomUUID();
      expectRefusalIn(await api.create({ ...aCapture(), displayName: '' }, key), 400, 'integration_invalid_request');
      expectLeadIn(await api.create(aCapture(), key), 201);
    },
  },
];

function expectSame(answer: Answer, original: Answer): void {
  assert.equal(answer.status, original.status, `the status is ${answer.status}: ${answer.text}`);
  assert.equal(answer.text, original.text, 'the body is not the original one');
}

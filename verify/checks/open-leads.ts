import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { aCapture, anEmail } from '../api.ts';
import type { Check } from '../check.ts';
import { concurrently, expectAddedLeads } from '../concurrently.ts';
import { expectLeadIn, expectRefusalIn } from '../expectations.ts';

const ALREADY_OPEN = 'integration_lead_already_open';

/** Checks that a contact has at most one open lead. */
export const OPEN_LEAD_CHECKS: readonly Check[] = [
  {
    title: 'a contact with an open lead gets no second lead, and the first stays as it is',
    rules: ['4.1.3', '4.1.enquiry', '7.2', '7.integration_lead_already_open'],
    async run(api) {
      const phone = { type: 'phone', value: `+4930${`${Date.now()}`.slice(-7)}` };
      for (const contact of [anEmail(), phone]) {
        const { id } = expectLeadIn(await api.create(aCapture({ contact })), 201);
        const { text } = await api.read(id);
        await expectAddedLeads(api, 0, async () => {
          const another = aCapture({ contact, displayName: 'Somebody else' });
          expectRefusalIn(await api.create(another), 409, ALREADY_OPEN);
        });
        assert.equal((await api.read(id)).text, text);
      }
    },
  },
  {
    title: 'a repetition of the request that opened the lead gets the original response, not a conflict',
    rules: ['4.1.1', '4.1.3'],
    async run(api) {
      const [capture, key] = [aCapture(), randomUUID()];
      const original = await api.create(capture, key);
      expectLeadIn(original, 201);
      expectRefusalIn(await api.create(capture), 409, ALREADY_OPEN);
      assert.equal((await api.create(capture, key)).text, original.text);
    },
  },
  {
    title: 'an Idempotency-Key that was refused for an open lead stays free',
    rules: ['4.1.success'],
    async run(api) {
      const [capture, key] = [aCapture(), randomUUID()];
      expectLeadIn(await api.create(capture), 201);
      expectRefusalIn(await api.create(capture, key), 409, ALREADY_OPEN);
      expectLeadIn(await api.create(aCapture(), key), 201);
    },
  },
  {
    title: 'of many concurrent requests for one contact, one creates the lead and the others are refused',
    rules: ['4.1.3'],
    async run(api) {
      const contact = anEmail();
      await expectAddedLeads(api, 1, async () => {
        const answers = await concurrently((index) => api.create(aCapture({ contact, note: `${index}` })));
        const created = answers.filter(({ status }) => status === 201);
        assert.equal(created.length, 1, `${created.length} leads were created`);
        for (const answer of answers) if (answer.status !== 201) expectRefusalIn(answer, 409, ALREADY_OPEN);
      });
    },
  },
];

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Api, aCapture, type Lead } from '../api.ts';
import type { Check } from '../check.ts';
import { expectLeadIn, expectPageIn, expectRefusalIn } from '../expectations.ts';

const INVALID = 'integration_invalid_request';
const LIMIT_RULES = ['4.3.limit', '8.limit'] as const;

export const READING_CHECKS: readonly Check[] = [
  {
    title: 'reading a new lead returns it as it was created',
    rules: ['4.2.current-state'],
    async run(api) {
      const created = expectLeadIn(await api.create(aCapture({ note: 'read me' })), 201);
      assert.deepEqual(expectLeadIn(await api.read(created.id), 200), created);
    },
  },
  {
    title: 'an unknown lead is not found',
    rules: ['4.2.not-found', '7.integration_lead_not_found'],
    async run(api) {
      expectRefusalIn(await api.read(randomUUID()), 404, 'integration_lead_not_found');
    },
  },
  {
    title: 'an id that is not a UUID is refused',
    rules: ['4.2.id'],
    async run(api) {
      for (const id of ['1', randomUUID().replaceAll('-', '')]) expectRefusalIn(await api.read(id), 400, INVALID);
    },
  },
  {
    title: 'a list, followed by cursors to its end, has every lead exactly once',
    rules: ['2.4.leads', '2.4.nextCursor', '4.3.paging', '4.3.cursor', '8.leads'],
    async run(api) {
      const created: Lead[] = [];
      while (created.length < 5) created.push(expectLeadIn(await api.create(aCapture()), 201));
      const listed = await listAll(api, 'limit=100');
      const ids = listed.map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length, 'a lead is listed twice');
      for (const lead of created) {
        assert.deepEqual(
          listed.find(({ id }) => id === lead.id),
          lead,
        );
      }
      // About twenty pages, or as many as a large studio needs.
      const otherwisePaged = await listAll(api, `limit=${Math.min(99, Math.max(2, Math.ceil(ids.length / 20)))}`);
      assert.deepEqual(
        otherwisePaged.map(({ id }) => id),
        ids,
        'pages of another size have other leads',
      );
    },
  },
  {
    title: 'a page has as many leads as requested, or 25 by default',
    rules: LIMIT_RULES,
    async run(api) {
      for (let count = await api.countLeads(); count < 26; count += 1) expectLeadIn(await api.create(aCapture()), 201);
      for (const [query, count] of [
        ['', 25],
        ['limit=1', 1],
        ['limit=26', 26],
      ] as const) {
        const { leads, nextCursor } = expectPageIn(await api.list(query));
        assert.equal(leads.length, count, `the query "${query}" returned ${leads.length} leads`);
        if (count < 26) assert.notEqual(nextCursor, null, 'nextCursor is null although there are more leads');
      }
    },
  },
  {
    title: 'a limit that is not a whole number from 1 to 100 is refused',
    rules: LIMIT_RULES,
    async run(api) {
      for (const limit of ['0', '101', '-1', '1.5', 'ten']) {
        expectRefusalIn(await api.list(`limit=${limit}`), 400, INVALID);
      }
    },
  },
  {
    title: 'an invalid cursor is refused',
    rules: ['4.3.cursor', '8.cursor', '7.integration_invalid_request'],
    async run(api) {
      for (const cursor of ['x', 'not~a~cursor', 'A'.repeat(512), 'A'.repeat(513)]) {
        expectRefusalIn(await api.list(`cursor=${cursor}`), 400, INVALID);
      }
    },
  },
];

/** Reads all leads of a list, page by page, and validates each page. */
async function listAll(api: Api, query: string): Promise<Lead[]> {
  const leads: Lead[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = expectPageIn(await api.list(cursor === undefined ? query : `${query}&cursor=${cursor}`));
    assert.notEqual(page.nextCursor, cursor, 'a page returned its own cursor');
    leads.push(...page.leads);
    cursor = page.nextCursor;
  }
  return leads;
}

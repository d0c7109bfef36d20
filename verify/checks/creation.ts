import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ProblemCode } from '../../gateway/problems.ts';
import { type Api, aCapture, anEmail, type Capture } from '../api.ts';
import type { Check } from '../check.ts';
import type { RuleId } from '../contract-rules.ts';
import { expectLeadIn, expectRefusalIn } from '../expectations.ts';

const INVALID = 'integration_invalid_request';

/** The shortest and longest valid values of each bounded text, and values just outside the bounds. */
const BOUNDS: readonly {
  readonly what: string;
  readonly rules: readonly RuleId[];
  readonly within: readonly Partial<Capture>[];
  readonly outside: readonly Partial<Capture>[];
}[] = [
  {
    what: 'a name has 1 to 160 characters',
    rules: ['2.1.displayName', '2.2.displayName', '8.displayName'],
    within: [{ displayName: 'x' }, { displayName: 'x'.repeat(160) }],
    outside: [{ displayName: '' }, { displayName: 'x'.repeat(161) }],
  },
  {
    what: 'a note has 1 to 2000 characters',
    rules: ['2.1.note', '2.2.note', '8.note'],
    within: [{ note: 'x' }, { note: 'x'.repeat(2000) }],
    outside: [{ note: '' }, { note: 'x'.repeat(2001) }],
  },
  {
    what: 'an email address has at most 254 characters',
    rules: ['2.2.email', '8.email'],
    within: [{ contact: emailOfLength(254) }],
    outside: [{ contact: emailOfLength(255) }],
  },
  {
    what: 'a phone number has 5 to 64 characters',
    rules: ['2.2.phone', '8.phone'],
    within: [{ contact: phoneOfLength(5) }, { contact: phoneOfLength(64) }],
    outside: [{ contact: { type: 'phone', value: '1234' } }, { contact: phoneOfLength(65) }],
  },
];

/** Invalid bodies, and the rules that they break. */
const INVALID_BODIES: readonly (readonly [what: string, rule: RuleId, body: unknown])[] = [
  ['without a name', '2.2.displayName', { contact: anEmail() }],
  ['with a name that is not a string', '2.2.displayName', { ...aCapture(), displayName: 1 }],
  ['without a contact', '2.2.contact', { displayName: 'x' }],
  ['with a contact of another type', '2.2.contact', { ...aCapture(), contact: { type: 'fax', value: '12345' } }],
  ['with a contact without a value', '2.2.contact', { ...aCapture(), contact: { type: 'email' } }],
  ['with another property in the contact', '2.2.contact', { ...aCapture(), contact: { ...anEmail(), name: 'x' } }],
  ['with a source that is not a UUID', '2.2.sourceId', { ...aCapture(), sourceId: 'website' }],
  ['with a note that is not a string', '2.2.note', { ...aCapture(), note: 1 }],
  ['with another property', '2.2.nothing-else', { ...aCapture(), stage: 'won' }],
  ['that is an array', '4.1.5', [aCapture()]],
  ['that is not JSON', '4.1.5', '{"displayName":'],
];

export const CREATION_CHECKS: readonly Check[] = [
  {
    title: 'a creation returns 201 and exactly the fields of the contract',
    rules: [
      '1.media-types',
      '2.1.id',
      '2.1.stage',
      '2.1.createdAt',
      '2.1.updatedAt',
      '2.1.nothing-else',
      '2.3.lead',
      '3.1.stages',
      '4.1.created',
      '4.1.headers',
    ],
    async run(api) {
      expectLeadIn(await api.create(aCapture()), 201);
    },
  },
  {
    title: 'a new lead has the given texts unchanged, and null for those left out',
    rules: ['2.1.displayName', '2.1.note', '2.1.sourceId', '2.2.note', '2.2.sourceId', '2.2.unchanged'],
    async run(api) {
      const texts = { displayName: '  Zoë “Ada” O’Neill-Łukasz  ', note: 'Two\nlines, a tab\t, ünïcödé, 日本' };
      const full = expectLeadIn(await api.create(aCapture(texts)), 201);
      assert.equal(full.displayName, texts.displayName, 'the name was changed');
      assert.equal(full.note, texts.note, 'the note was changed');
      for (const absent of [{}, { note: null, sourceId: null }]) {
        const { note, sourceId } = expectLeadIn(await api.create(aCapture(absent)), 201);
        assert.deepEqual({ note, sourceId }, { note: null, sourceId: null });
      }
    },
  },
  {
    title: 'the contact is not returned',
    rules: ['2.1.no-contact'],
    async run(api) {
      const contact = anEmail();
      const created = await api.create(aCapture({ contact }));
      const read = await api.read(expectLeadIn(created, 201).id);
      for (const { text } of [created, read]) assert(!text.includes(contact.value), `the contact is in ${text}`);
    },
  },
  {
    title: 'a new lead has the given source',
    rules: ['2.1.sourceId', '2.2.sourceId'],
    obstacle: ({ sourceId }) => (sourceId === undefined ? 'no source given: set LEAD_INTAKE_SOURCE_ID' : undefined),
    async run(api) {
      const answer = await api.create(aCapture({ sourceId: api.sourceId ?? null }));
      const refusal = 'LEAD_INTAKE_SOURCE_ID is refused: is it an enabled source of the studio of the key?';
      assert.notEqual(answer.status, 400, refusal);
      const { sourceId } = expectLeadIn(answer, 201);
      assert.equal(sourceId, api.sourceId?.toLowerCase());
    },
  },
  {
    title: 'an unknown source is refused, and nothing is written',
    rules: ['4.1.4', '7.integration_source_invalid'],
    run: (api) => expectRefused(api, aCapture({ sourceId: randomUUID() }), 'integration_source_invalid'),
  },
  ...BOUNDS.map(
    ({ what, rules, within, outside }): Check => ({
      title: what,
      rules,
      async run(api) {
        for (const value of within) await expectAccepted(api, aCapture(value));
        for (const value of outside) await expectRefused(api, aCapture(value));
      },
    }),
  ),
  ...INVALID_BODIES.map(
    ([what, rule, body]): Check => ({
      title: `a body ${what} is refused`,
      rules: [...new Set<RuleId>([rule, '4.1.5', '7.integration_invalid_request'])],
      run: (api) => expectRefused(api, body),
    }),
  ),
  {
    title: 'an Idempotency-Key that is missing, or not a UUID with hyphens, is refused',
    rules: ['4.1.headers', '7.integration_invalid_request'],
    async run(api) {
      const uuid = randomUUID();
      for (const key of [null, 'order-4711', uuid.replaceAll('-', ''), `{${uuid}}`, `${uuid}0`]) {
        expectRefusalIn(await api.create(aCapture(), key), 400, INVALID);
      }
    },
  },
];

/** Expects a body to be valid. There are few shortest contacts, so an earlier run may have left an open lead of one. */
async function expectAccepted(api: Api, capture: Capture): Promise<void> {
  const answer = await api.create(capture);
  if (answer.status === 409) expectRefusalIn(answer, 409, 'integration_lead_already_open');
  else expectLeadIn(answer, 201);
}

/** Expects a refusal that leaves the Idempotency-Key and the contact free. */
async function expectRefused(api: Api, body: unknown, code: ProblemCode = INVALID): Promise<void> {
  const key = randomUUID();
  expectRefusalIn(await api.create(body, key), 400, code);
  const { contact } = (body ?? {}) as Partial<Capture>;
  const isUsable = contact?.type === 'email' && contact.value?.length <= 254 && Object.keys(contact).length === 2;
  // If the refused request had written a lead, this creation would be refused as a conflict or because of an open lead.
  expectLeadIn(await api.create(aCapture(isUsable ? { contact } : {}), key), 201);
}

function emailOfLength(length: number): Capture['contact'] {
  const local = randomUUID();
  const label = `${'x'.repeat(50)}.`;
  const rest = length - local.length - 1;
  return { type: 'email', value: `${local}@${label.repeat(Math.ceil(rest / label.length)).slice(0, rest - 3)}xyz` };
}

/** Returns random digits. */
function phoneOfLength(length: number): Capture['contact'] {
  const digits = BigInt(`0x${randomUUID().replaceAll('-', '')}`).toString();
  return { type: 'phone', value: digits.slice(-Math.min(length, 30)).padStart(length, '0') };
}

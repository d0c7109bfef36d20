import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import {
  aCapture,
  anEmail,
  aService,
  BOTH_SCOPES,
  expectLead,
  expectProblem,
  type LeadJson,
  readLead,
  type StudioWithKey,
} from '../support/service.ts';

const service = aService();
/** Another studio with a key, a lead and a cursor. */
let other: StudioWithKey & { readonly leadId: string; readonly cursor: string };

beforeAll(async () => {
  const studio = await service.aStudioWithKey();
  const { id: leadId } = await readLead(await service.post(studio.secret, aCapture({ displayName: 'Not yours' })), 201);
  await readLead(await service.post(studio.secret, aCapture()), 201);
  const cursor = ((await (await service.get(studio.secret, '?limit=1')).json()) as { nextCursor: string }).nextCursor;
  other = { ...studio, leadId, cursor };
});

/** The expected start of a response: its status and, for an error, its code and its faulty fields. */
type Expected = readonly [status: number, code?: string, fields?: readonly string[]];

/** A studio with one lead, and a secret that may or may not be valid for it. */
interface Holder {
  readonly studio: StudioWithKey;
  readonly leadId: string;
  /** The secret to send; null sends none. */
  readonly secret: string | null;
}

const KEY_INVALID: Expected = [401, 'integration_key_invalid', []];
const ISSUER_FORBIDDEN: Expected = [403, 'integration_issuer_forbidden', []];

/** The states of a key: how a key gets there, which secret is then sent, and how operations are refused, if they are. */
const STATES: readonly (readonly [
  state: string,
  become: (studio: StudioWithKey) => Promise<unknown> | string | null,
  refusal: Expected | undefined,
])[] = [
  ['live', async () => {}, undefined],
  [
    'the replacement of another one',
    (studio) => service.apiKeys.replaceApiKey(studio).then((it) => it.secret),
    undefined,
  ],
  ['missing', () => null, KEY_INVALID],
  ['misspelt', ({ secret }) => secret.slice(0, -1) + (secret.endsWith('A') ? 'B' : 'A'), KEY_INVALID],
  ['unknown', () => newKeySecret(), KEY_INVALID],
  [
    'expired',
    ({ secret }) => vi.waitFor(async () => expect((await get(secret, '')).status).toBe(401), { timeout: 100_000 }),
    KEY_INVALID,
  ],
  ['revoked', async (studio) => void (await service.apiKeys.revokeApiKey(studio)), KEY_INVALID],
  ['replaced', async (studio) => void (await service.apiKeys.replaceApiKey(studio)), KEY_INVALID],
  [
    'of a suspended studio',
    ({ studioId: id }) => service.directory.putStudio({ studio: { id, status: StudioStatus.SUSPENDED } }),
    [402, 'subscription_suspended', []],
  ],
  [
    'of an issuer who is staff',
    ({ studioId, memberId: id }) => service.directory.putMember({ member: { studioId, id, role: MemberRole.STAFF } }),
    ISSUER_FORBIDDEN,
  ],
  [
    'of a removed issuer',
    ({ studioId, memberId }) => service.directory.removeMember({ studioId, memberId }),
    ISSUER_FORBIDDEN,
  ],
];

const SCOPES: readonly (readonly ApiKeyScope[])[] = [BOTH_SCOPES, [ApiKeyScope.LEADS_READ], [ApiKeyScope.LEADS_CREATE]];

/** Every operation: its required scope, how to request it, and the expected response with that scope. */
const OPERATIONS: readonly (readonly [
  operation: string,
  scope: ApiKeyScope,
  request: (holder: Holder) => Promise<Response>,
  expected: Expected,
])[] = [
  ['creating a lead', ApiKeyScope.LEADS_CREATE, ({ secret }) => post(secret, aCapture()), [201]],
  [
    "creating a lead from another studio's source",
    ApiKeyScope.LEADS_CREATE,
    ({ secret }) => post(secret, aCapture({ sourceId: other.sourceId })),
    [400, 'integration_source_invalid', []],
  ],
  ['reading its lead', ApiKeyScope.LEADS_READ, ({ secret, leadId }) => get(secret, `/${leadId}`), [200]],
  [
    "reading another studio's lead",
    ApiKeyScope.LEADS_READ,
    ({ secret }) => get(secret, `/${other.leadId}`),
    [404, 'integration_lead_not_found', []],
  ],
  [
    'reading an unknown lead',
    ApiKeyScope.LEADS_READ,
    ({ secret }) => get(secret, `/${randomUUID()}`),
    [404, 'integration_lead_not_found', []],
  ],
  [
    'reading an invalid id',
    ApiKeyScope.LEADS_READ,
    ({ secret }) => get(secret, '/1'),
    [400, 'integration_invalid_request', ['id']],
  ],
  ['listing leads', ApiKeyScope.LEADS_READ, ({ secret }) => get(secret, ''), [200]],
  [
    'listing leads with a cursor of another studio',
    ApiKeyScope.LEADS_READ,
    ({ secret }) => get(secret, `?cursor=${other.cursor}`),
    [400, 'integration_invalid_request', ['cursor']],
  ],
];

const authorization = (secret: string | null) => (secret === null ? { authorization: null } : {});
const post = (secret: string | null, body: unknown) => service.post(secret ?? '', body, authorization(secret));
const get = (secret: string | null, path: string) => service.get(secret ?? '', path, authorization(secret));

/** Creates a studio with a lead, and brings its key into the given state. */
async function hold(
  state: string,
  become: (typeof STATES)[number][1],
  scopes: readonly ApiKeyScope[],
): Promise<Holder> {
  const studio = await service.aStudioWithKey({ scopes, ...(state === 'expired' && { expiresInMs: 1000 }) });
  const { lead } = await service.leads.createLead({
    studioId: studio.studioId,
    idempotencyKey: randomUUID(),
    displayName: 'Own',
    contact: { value: { case: 'email', value: anEmail().value } },
  });
  const became = await become(studio);
  return {
    studio,
    leadId: lead?.id ?? '',
    secret: typeof became === 'string' || became === null ? became : studio.secret,
  };
}

/** Each state of a valid key with all scopes; states that refuse no operation also with each single scope. */
const KEYS = STATES.filter(([, , refusal]) => refusal !== KEY_INVALID).flatMap(([state, become, refusal]) =>
  SCOPES.filter((_, index) => index === 0 || !refusal).map((scopes) => ({ state, become, refusal, scopes })),
);

describe.each(KEYS)('a key that is $state, with the scopes $scopes,', ({ state, become, refusal, scopes }) => {
  let holder: Holder;
  let ownLeads: number;
  let otherLeads: number;
  beforeAll(async () => {
    holder = await hold(state, become, scopes);
    ownLeads = await service.countLeads(holder.studio.studioId);
    otherLeads = await service.countLeads(other.studioId);
  });

  test.each(OPERATIONS)(
    'an operation gets the response of the contract for the key: %s',
    {
      tags: [
        '3.2.renewed',
        '5.3',
        '5.7',
        '5.9',
        '5.10',
        '5.11',
        '7.integration_scope_forbidden',
        '7.integration_issuer_forbidden',
        '7.subscription_suspended',
      ],
    },
    async (_, scope, request, expected) => {
      const [status, code, fields] =
        refusal ?? (scopes.includes(scope) ? expected : [403, 'integration_scope_forbidden', []]);

      const response = await request(holder);

      if (code !== undefined) await expectProblem(response, status, code, fields);
      else await expectOwn(response, status, holder);
      ownLeads += status === 201 ? 1 : 0;
      expect(await service.countLeads(holder.studio.studioId)).toBe(ownLeads);
      expect(await service.countLeads(other.studioId)).toBe(otherLeads);
    },
  );
});

/** Expects a response with leads of the holder's studio only. */
async function expectOwn(response: Response, status: number, { studio }: Holder): Promise<void> {
  expect(response.status).toBe(status);
  const json = (await response.json()) as { lead?: LeadJson; leads?: LeadJson[] };
  const leads = (json.leads ?? [json.lead]).map(expectLead);
  expect(leads.length).toBeGreaterThan(0);
  for (const { id, displayName } of leads) {
    expect(displayName).not.toBe('Not yours');
    expect((await service.leads.getLead({ studioId: studio.studioId, leadId: id })).lead?.id).toBe(id);
  }
}

/** Returns everything that lets a client distinguish two responses. */
async function comparable(response: Response): Promise<unknown> {
  const {
    date: _date,
    'x-request-id': requestId,
    ratelimit: _ratelimit,
    ...headers
  } = Object.fromEntries(response.headers);
  const text = (await response.text()).replaceAll(requestId ?? '', 'REQUEST-ID');
  return { status: response.status, headers, text };
}

test('all invalid keys get the same refusal, and nothing is written', {
  tags: ['3.2.replaced', '3.2.expired', '3.2.revoked', '5.8', '7.integration_key_invalid'],
}, async () => {
  const invalid = STATES.filter(([, , refusal]) => refusal === KEY_INVALID);
  expect(invalid.length).toBe(6);
  const holders = await Promise.all(invalid.map(([state, become]) => hold(state, become, BOTH_SCOPES)));
  for (const [, , request] of OPERATIONS) {
    const responses = await Promise.all(holders.map(request));
    await expectProblem((responses[0] as Response).clone(), 401, 'integration_key_invalid', []);
    const compared = await Promise.all(responses.map(comparable));
    for (const each of compared) expect(each).toEqual(compared[0]);
  }
  for (const { studio } of holders) expect(await service.countLeads(studio.studioId)).toBe(1);
});

/** Resources of another studio, and resources of the same kind that do not exist, requested in the same way. */
const HIDDEN: readonly (readonly [
  what: string,
  of: (studio: StudioWithKey) => readonly [foreign: () => Promise<Response>, unknown: () => Promise<Response>],
])[] = [
  ['a lead', ({ secret }) => [() => get(secret, `/${other.leadId}`), () => get(secret, `/${randomUUID()}`)]],
  [
    'a source',
    ({ secret }) => [
      () => post(secret, aCapture({ sourceId: other.sourceId })),
      () => post(secret, aCapture({ sourceId: randomUUID() })),
    ],
  ],
  [
    'a cursor',
    ({ secret }) => [
      () => get(secret, `?cursor=${other.cursor}`),
      () => get(secret, `?cursor=${changed(other.cursor)}`),
    ],
  ],
];

const changed = (cursor: string) => cursor.slice(0, -9) + [...cursor.slice(-9)].reverse().join('');

// test/soak/isolation-in-time.test.ts measures that timing reveals nothing either.
describe('a resource of another studio gets the same response as one that does not exist', () => {
  test.each(HIDDEN)('%s of another studio gets the same response as one that does not exist', async (_, of) => {
    const [foreign, unknown] = of(await service.aStudioWithKey());
    expect(await comparable(await foreign())).toEqual(await comparable(await unknown()));
  });

  test('an Idempotency-Key and a contact of another studio are free in this one', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const key = { 'idempotency-key': randomUUID() };
    const capture = aCapture();
    const theirs = await readLead(await service.post(other.secret, capture, key), 201);

    const response = await service.post(secret, capture, key);

    expect(response.headers.has('idempotent-replayed')).toBe(false);
    expect((await readLead(response, 201)).id).not.toBe(theirs.id);
    expect(await service.countLeads(studioId)).toBe(1);
  });
});

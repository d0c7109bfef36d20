import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import type { Environment } from '../../common/settings.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { tokenDigits, tokenHash } from '../../src/callers-file.ts';
import { ANY_CALLER, CALLER_ROLES, type CallerRole } from '../../src/domain/caller.ts';
import { mayUse, findRefusal as roleRefusal } from '../../src/rpc/callers.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { MAX_STREAMS_PER_CALLER } from '../../src/rpc/run-stream.ts';
import { times } from '../support/builders.ts';
import { allOutcomes, openExchange } from '../support/exchange-calls.ts';
import {
  aCreateLeadRequest,
  CONTRACT_RPCS,
  CORE_TOKEN,
  findRefusal,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
} from '../support/grpc.ts';
import { createKey } from '../support/grpc-studios.ts';
import { scrape } from '../support/metrics.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { entry, writeCallersFile } from './a-callers-file.ts';

const FORBIDDEN = { code: 'PERMISSION_DENIED', reason: 'CALLER_FORBIDDEN' };
const UNAUTHENTICATED = { code: 'UNAUTHENTICATED', reason: 'CALLER_UNAUTHENTICATED' };

/** The roles that may call each method, as in docs/reference/rpc-api.md. */
const METHODS: ReadonlyMap<string, readonly CallerRole[]> = new Map(
  (
    [
      ['Exchange RecordRequests', ['gateway']],
      ['AuthenticateApiKey', ['gateway', 'crm']],
      ['GetLead ListLeads CountLeads ListLeadEvents ExportLeads FindLeads', ['read', 'crm']],
      ['CreateLead ChangeLeadStage UpdateLead ImportLeads EraseLead EraseContact ExportContact', ['crm']],
      ['PullLeadChanges WatchLeadChanges AcknowledgeLeadChanges', ['feed', 'crm']],
      ['ResendLeads', ['feed', 'crm', 'operator']],
      ['CreateConsumer RemoveConsumer', ['crm', 'operator']],
      ['ListConsumers ListSetAsideLeadChanges', ['read', 'feed', 'crm', 'operator']],
      ['FindMissingLeads', ['read', 'feed', 'crm']],
      ['SetAsideLeadChanges', ['feed', 'crm']],
      ['TakeBackLeadChanges', ['feed', 'crm', 'operator']],
      [
        'GetStudio ListStudios ListLeadSources ListApiKeys ListAuditEvents ExportAuditEvents ListRequests',
        ['read', 'crm', 'operator'],
      ],
      ['PutStudio PutApiKeyQuota PutMember RemoveMember PutLeadSource RemoveLeadSource', ['crm', 'operator']],
      ['RevokeApiKey', ['crm', 'operator']],
      ['CreateApiKey ReplaceApiKey EmptyStudio', ['crm']],
      ['EraseStudio', ['operator']],
    ] as const
  ).flatMap(([names, roles]) => names.split(' ').map((name) => [name, roles] as const)),
);

/** Returns the names of the lists in a message whose elements name a studio, however deep. */
const listsOfStudios = ({ fields }: DescMessage): string[] =>
  fields.flatMap((field) => {
    const { message, localName } = field;
    if (!message) return [];
    const within = listsOfStudios(message).map((name) => `${localName}.${name}`);
    const isOne = field.fieldKind === 'list' && message.fields.some(({ name }) => name === 'studio_id');
    return isOne ? [localName, ...within] : within;
  });

/** For each method that takes leads of several studios: a valid request, and an element of its list. */
const ABOUT_SOME_LEADS: Readonly<Record<string, () => { readonly each: object } & object>> = {
  'LeadIntakeService/AcknowledgeLeadChanges': () => ({ consumer: 'copy', each: { revision: 0 } }),
  'ConsumerService/SetAsideLeadChanges': () => ({ consumer: 'copy', each: { revision: 0, reason: 'ANY' } }),
  'RequestLogService/RecordRequests': () => ({
    batchId: randomUUID(),
    each: {
      ...{ time: { seconds: Math.floor(Date.now() / 1000) }, operation: 'getLead', apiKeyId: randomUUID() },
      ...{ secretHint: 'abcd', status: 200, requestId: 'some' },
    },
  }),
};

const findName = (rpc: string) => rpc.split('/')[1] as string;

async function aCore(env: Environment) {
  const core = await startTestCore(env);
  const caller = grpcCaller(`127.0.0.1:${core.port}`);
  onTestFinished(async () => {
    caller.close();
    await core.stop();
  });
  return { core, caller };
}

/** Starts a core in a separate process, without CORE_TOKEN, whose log the test reads. */
async function aLoggingCore(callersFile: string) {
  const core = run('src/main.ts', {
    env: { CORE_CALLERS_FILE: callersFile, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'l.db')}` },
  });
  const caller = grpcCaller(new URL(await readAddress(core)).host);
  onTestFinished(() => caller.close());
  return { core, caller };
}

/** Makes calls with a token. */
const as =
  (caller: GrpcCaller, token: string) =>
  (rpc: string, request: object = {}) =>
    caller.call(rpc, request, { authorization: `Bearer ${token}` });

/** Returns the refusal of a call, or 'succeeded'. */
async function findOutcome(call: Promise<unknown>) {
  return call.then(
    () => 'succeeded',
    () => findRefusal(call),
  );
}

/** Whether a call is refused because of its caller. */
async function isForbidden(call: Promise<unknown>): Promise<boolean> {
  const outcome = await findOutcome(call);
  return typeof outcome === 'object' && outcome.reason === 'CALLER_FORBIDDEN';
}

// @proves secrets-1
describe('callers of a file', () => {
  test('the table of roles names every method', () =>
    expect([...METHODS.keys()].toSorted()).toEqual(CONTRACT_RPCS.map(findName).toSorted()));

  test.each(CALLER_ROLES)('%s may call its own methods and no others', async (role) => {
    const token = newCoreToken();
    const it = { ...entry(token, [role]), ...(role === 'feed' && { consumers: ['relay'] }) };
    const { caller } = await aCore({ CORE_CALLERS_FILE: writeCallersFile({ it }).path });
    const mayCall = (rpc: string) => METHODS.get(findName(rpc))?.includes(role) === true;
    const call = (rpc: string) =>
      caller.call(rpc, role === 'feed' && !/CreateConsumer|ListConsumers/.test(rpc) ? { consumer: 'relay' } : {}, {
        authorization: `Bearer ${token}`,
        // A permitted watch of the feed gets no response.
        deadline: Date.now() + (mayCall(rpc) && rpc.includes('Watch') ? 1000 : 30_000),
      });
    const allowed: string[] = [];
    for (const rpc of CONTRACT_RPCS) {
      // With access, an empty request fails by the method's own rules, succeeds, or stays open like the feed.
      if (!(await isForbidden(call(rpc)))) allowed.push(rpc);
    }
    expect(allowed).toEqual(CONTRACT_RPCS.filter(mayCall));
  });

  test('only tokens of the callers file are accepted, and a refusal names the caller', async () => {
    const token = newCoreToken();
    const { caller } = await aCore({
      CORE_TOKEN: undefined,
      CORE_CALLERS_FILE: writeCallersFile({ reporting: entry(token, ['read']) }).path,
    });
    const wrong = [
      undefined,
      '',
      token,
      `Basic ${token}`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token}, Bearer ${token}`,
    ];
    for (const authorization of [...wrong, `Bearer ${tokenHash(token)}`, `Bearer ${CORE_TOKEN}`]) {
      expect(await findRefusal(caller.call('DirectoryService/ListStudios', {}, { authorization }))).toMatchObject(
        UNAUTHENTICATED,
      );
    }
    const refused = await findRefusal(as(caller, token)('LeadIntakeService/CreateLead'));
    expect(refused).toMatchObject({ ...FORBIDDEN, metadata: { caller: 'reporting' } });
    expect(await as(caller, token)('DirectoryService/ListStudios')).toMatchObject({ studios: [] });
  });

  test('CORE_TOKEN may do everything until the callers file lists it, and never again after that', async () => {
    const file = writeCallersFile({ other: entry(newCoreToken(), ['read']) });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    const list = () => findOutcome(caller.call('DirectoryService/ListStudios'));
    expect(await list()).toBe('succeeded');
    file.put({ website: entry(CORE_TOKEN, ['gateway']) });
    await expect.poll(list).toMatchObject(FORBIDDEN);
    file.put({});
    await expect.poll(list).toMatchObject(UNAUTHENTICATED);
  });
});

// @proves secrets-1 requests-3
describe('a caller of some studios', () => {
  test('a caller of some studios has no access to others, or to methods across all studios', async () => {
    const token = newCoreToken();
    const file = writeCallersFile({ branch: entry(token, ['crm', 'operator'], ['own']) });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    for (const id of ['own', 'other']) {
      await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
    }
    const call = as(caller, token);
    const lead = { displayName: 'Ada', contact: { email: 'ada@example.org' } };
    const created = (studioId: string) =>
      call('LeadIntakeService/CreateLead', { studioId, idempotencyKey: randomUUID(), ...lead });
    await created('own');
    expect(await findRefusal(created('other'))).toMatchObject({ ...FORBIDDEN, metadata: { caller: 'branch' } });

    const others: [string, object][] = [
      ['LeadIntakeService/ListLeads', { studioId: 'other' }],
      ['LeadIntakeService/UpdateLead', { studioId: 'other', lead: { studioId: 'own' } }],
      ['LeadIntakeService/ExportLeads', {}],
      ['LeadIntakeService/ExportContact', { studioId: 'other', contact: lead.contact }],
      ['LeadIntakeService/PullLeadChanges', {}],
      ['LeadIntakeService/WatchLeadChanges', {}],
      ['LeadIntakeService/ResendLeads', {}],
      [
        'LeadIntakeService/AcknowledgeLeadChanges',
        { acknowledgements: ['own', 'other'].map((studioId) => ({ studioId, leadId: randomUUID(), revision: 1 })) },
      ],
      ['DirectoryService/ListStudios', {}],
      ['DirectoryService/PutStudio', { studio: { id: 'other', status: 'STUDIO_STATUS_SUSPENDED' } }],
      ['DirectoryService/PutMember', { member: { studioId: 'other', id: 'm', role: 'MEMBER_ROLE_OWNER' } }],
      ['AuditService/ExportAuditEvents', {}],
    ];
    for (const [rpc, request] of others) {
      expect([rpc, await findOutcome(call(rpc, request))]).toMatchObject([rpc, FORBIDDEN]);
    }
    await call('LeadIntakeService/ListLeads', { studioId: 'own' });
    await call('DirectoryService/PutMember', { member: { studioId: 'own', id: 'm', role: 'MEMBER_ROLE_OWNER' } });
    expect(await caller.call('DirectoryService/GetStudio', { studioId: 'other' })).toMatchObject({
      studio: { status: 'STUDIO_STATUS_ACTIVE' },
    });
  });

  test('no list in a request tells a caller whether another studio exists or has a lead', async () => {
    const token = newCoreToken();
    const file = writeCallersFile({ branch: entry(token, ['crm', 'gateway'], ['own']) });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    const findLead = async (studioId: string): Promise<string> => {
      await caller.call('DirectoryService/PutStudio', { studio: { id: studioId, status: 'STUDIO_STATUS_ACTIVE' } });
      const request = aCreateLeadRequest(studioId);
      const { lead } = await caller.call<{ lead: { id: string } }>('LeadIntakeService/CreateLead', request);
      return lead.id;
    };
    const [ownLead, otherLead] = [await findLead('own'), await findLead('other')];
    const call = as(caller, token);
    const consumer = { name: 'copy', studioIds: ['own'] };
    await call('ConsumerService/CreateConsumer', { consumer, start: 'CONSUMER_START_ALL_LEADS' });

    const named = ALL_SERVICES.flatMap(({ methods }) => methods).flatMap((method) =>
      listsOfStudios(method.input).map((field) => ({ rpc: `${method.parent.name}/${method.name}`, field })),
    );
    expect(named.map(({ rpc }) => rpc).toSorted()).toEqual(Object.keys(ABOUT_SOME_LEADS).toSorted());
    for (const { rpc, field } of named) {
      const about = (studioId: string, leadId: string) => {
        const { each, ...rest } = ABOUT_SOME_LEADS[rpc]?.() ?? expect.fail(rpc);
        const own = { ...each, studioId: 'own', leadId: ownLead };
        const answer = call(rpc, { ...rest, [field]: [own, { ...each, studioId, leadId }] });
        return answer.catch(() => findRefusal(answer));
      };
      // This changes the caller's own lead, so the calls below differ only in the other element.
      expect(await about('own', ownLead)).not.toHaveProperty('reason');
      const learnt = [
        await about('other', otherLead),
        await about('other', randomUUID()),
        await about('none', randomUUID()),
      ];
      expect({ rpc, learnt }).toEqual({ rpc, learnt: learnt.map(() => learnt[0]) });
    }
  });

  test("a gateway of some studios cannot tell other studios' keys from unknown ones", async () => {
    const token = newCoreToken();
    const file = writeCallersFile({ branch: entry(token, ['gateway'], ['own']) });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    const createSecret = async (studioId: string, status: string) => {
      await caller.call('DirectoryService/PutStudio', { studio: { id: studioId, status } });
      return (await createKey(caller, { studioId })).secretSha256;
    };
    const own = await createSecret('own', 'STUDIO_STATUS_ACTIVE');
    const suspended = await createSecret('other', 'STUDIO_STATUS_SUSPENDED');
    const call = as(caller, token);

    expect(await call('ApiKeyService/AuthenticateApiKey', { secretSha256: own })).toMatchObject({ studioId: 'own' });
    expect(await findRefusal(call('ApiKeyService/AuthenticateApiKey', { secretSha256: suspended }))).toMatchObject({
      reason: 'KEY_INVALID',
    });
    const exchange = openExchange(caller, { authorization: `Bearer ${token}` });
    exchange.send([own, suspended].map((secretSha256) => ({ secretSha256, listLeads: {} })));
    expect(await allOutcomes(exchange, 2)).toMatchObject([{ answer: {} }, { refusal: { reason: 'KEY_INVALID' } }]);

    const request = { time: { seconds: Math.floor(Date.now() / 1000) }, operation: 'getLead', apiKeyId: randomUUID() };
    const requests = ['own', 'other', 'own'].map((studioId) => ({
      ...request,
      studioId,
      secretHint: 'abcd',
      status: 200,
      requestId: studioId,
    }));
    const recorded = await call('RequestLogService/RecordRequests', { batchId: randomUUID(), requests });
    expect(recorded).toEqual({ skippedCount: 1 });
    const listed = (studioId: string) => caller.call('RequestLogService/ListRequests', { studioId });
    expect(await listed('own')).toMatchObject({ requests: [{ studioId: 'own' }, { studioId: 'own' }] });
    expect(await listed('other')).toMatchObject({ requests: [] });
  });
});

// @proves secrets-4
test('only the operator lists and revokes keys of any studio without being a member', async () => {
  const [operator, crm] = [newCoreToken(), newCoreToken()];
  const file = writeCallersFile({ platform: entry(operator, ['operator']), crm: entry(crm, ['crm']) });
  const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
  const { owner, secretSha256 } = await createKey(caller);
  const { studioId, apiKeyId } = owner;

  for (const each of [as(caller, crm), as(caller, CORE_TOKEN)]) {
    expect(await findRefusal(each('ApiKeyService/ListApiKeys', { studioId }))).toMatchObject({ fields: ['memberId'] });
    expect(await findRefusal(each('ApiKeyService/RevokeApiKey', { studioId, apiKeyId }))).toMatchObject({
      fields: ['memberId'],
    });
  }
  const byOperator = as(caller, operator);
  expect(await byOperator('ApiKeyService/ListApiKeys', { studioId })).toMatchObject({ apiKeys: [{ id: apiKeyId }] });
  // A member named in the request must have the role.
  expect(await findRefusal(byOperator('ApiKeyService/ListApiKeys', { studioId, memberId: 'x' }))).toMatchObject({
    reason: 'MEMBER_FORBIDDEN',
  });
  expect(await findRefusal(byOperator('ApiKeyService/ReplaceApiKey', { studioId, apiKeyId }))).toMatchObject(FORBIDDEN);
  await byOperator('ApiKeyService/RevokeApiKey', { studioId, apiKeyId });
  expect(await findRefusal(caller.call('ApiKeyService/AuthenticateApiKey', { secretSha256 }))).toMatchObject({
    reason: 'KEY_INVALID',
  });
  const { events } = await byOperator('AuditService/ListAuditEvents', { studioId });
  expect((events as object[])[0]).toMatchObject({ action: 'AUDIT_ACTION_API_KEY_REVOKED', caller: 'platform' });
  expect((events as { memberId?: string }[])[0]?.memberId ?? '').toBe('');
});

// @proves secrets-2
describe('a file that changes', () => {
  test('a changed callers file applies to new calls at once, and open ones lose no result', async () => {
    const [first, second] = [newCoreToken(), newCoreToken()];
    const tokens = [first, second].map((token) => ({ sha256: tokenHash(token) }));
    const file = writeCallersFile({ website: { may: ['gateway'], tokens } });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    const secretSha256 = Buffer.alloc(32);
    const calls = [first, second].map((token) => openExchange(caller, { authorization: `Bearer ${token}` }));
    const invalid = { refusal: { reason: 'KEY_INVALID' } };
    for (const call of calls) {
      await call.send([{ secretSha256, authenticate: {} }]);
      expect(await call.outcome(0)).toMatchObject(invalid);
    }

    file.put({ website: { may: ['gateway'], tokens: tokens.slice(1) } });
    // The core ends the call, but not with a failure.
    expect(await Promise.race([calls[0]?.ended.then(() => 'ended'), sleep(60_000, 'still open')])).toBe('ended');
    expect(await findRefusal(as(caller, first)('ApiKeyService/AuthenticateApiKey', { secretSha256 }))).toMatchObject(
      UNAUTHENTICATED,
    );
    await calls[1]?.send([{ secretSha256, authenticate: {} }]);
    expect(await calls[1]?.outcome(1)).toMatchObject(invalid);
    calls[1]?.end();
    await calls[1]?.ended;
  });

  // @proves secrets-9
  test('a caller that gains a studio has it on its open stream', async () => {
    const token = newCoreToken();
    const file = writeCallersFile({ website: entry(token, ['gateway'], ['none']) });
    const { caller } = await aCore({ CORE_CALLERS_FILE: file.path });
    const { owner, secretSha256 } = await createKey(caller);
    const exchange = openExchange(caller, { authorization: `Bearer ${token}` });
    let asked = 0;
    const ask = async () => {
      exchange.send([{ secretSha256, authenticate: {} }]);
      asked += 1;
      return exchange.outcome(asked - 1);
    };
    expect(await ask()).toMatchObject({ refusal: { reason: 'KEY_INVALID' } });
    file.put({ website: entry(token, ['gateway'], ['none', owner.studioId]) });
    await expect.poll(ask).not.toHaveProperty('refusal');
    exchange.end();
    await exchange.ended;
  });

  test('an unusable callers file leaves the former in use, logged once and without its content', async () => {
    const token = newCoreToken();
    const file = writeCallersFile({ reporting: entry(token, ['read']) });
    const { core, caller } = await aLoggingCore(file.path);
    const list = () => as(caller, token)('DirectoryService/ListStudios');
    await list();

    file.write('{ "callers": { "reporting": { "may": ["everything"], "tokens": ["s3cret-in-the-wrong-place"] } } }');
    await core.printed(/callers not reloaded: their files cannot be used/);
    await list();
    file.write('');
    await core.printed(/is not JSON/);
    await list();
    expect(core.output()).not.toContain('s3cret');

    file.put({ reporting: entry(token, ['gateway']) });
    await core.printed(/callers reloaded/);
    expect(await findRefusal(list())).toMatchObject(FORBIDDEN);
    await core.printed(/"caller":"reporting","operation":"ListStudios","outcome":"ok"/);
    await core.printed(/"caller":"reporting","operation":"ListStudios","outcome":"CALLER_FORBIDDEN"/);
    expect(core.output().match(/callers not reloaded/g)).toHaveLength(2);
  });
});

// @proves secrets-4
test('metrics and audit events name the caller', async () => {
  const [token, reader] = [newCoreToken(), newCoreToken()];
  const file = writeCallersFile({ 'crm-berlin': entry(token, ['crm']), reporting: entry(reader, ['read']) });
  const { core, caller } = await aCore({ CORE_CALLERS_FILE: file.path, CORE_METRICS_ADDRESS: '127.0.0.1:0' });
  const studio = { id: 'studio', status: 'STUDIO_STATUS_ACTIVE' };
  await as(caller, token)('DirectoryService/PutStudio', { studio, memberId: 'member-1' });
  await caller.call('DirectoryService/PutStudio', { studio: { ...studio, status: 'STUDIO_STATUS_SUSPENDED' } });

  const { events } = await caller.call('AuditService/ListAuditEvents', { studioId: 'studio' });
  expect(events).toMatchObject([{ to: 'suspended' }, { to: 'active', memberId: 'member-1', caller: 'crm-berlin' }]);
  expect((events as object[])[0]).not.toHaveProperty('caller', expect.stringMatching(/./));
  await isForbidden(as(caller, reader)('DirectoryService/PutStudio', { studio }));
  const samples = await scrape(core.metricsUrl);
  const series = [...samples].filter(([name]) => name.startsWith('lead_intake_core_caller_calls_total'));
  const labels = (name: string, each: string) => `{caller="${name}",credential="${tokenDigits(tokenHash(each))}"}`;
  expect(series.map(([name, value]) => [name.replace(/^[^{]+/, ''), value])).toEqual([
    [labels('crm-berlin', token), 1],
    [labels('reporting', reader), 1],
  ]);
});

/** The methods that need a role; anyone may call those of health. */
const LISTED = ALL_SERVICES.filter(({ typeName }) => typeName !== Health.typeName);

test('every method needs a role, except health checks', () => {
  for (const method of LISTED.flatMap(({ methods }) => methods)) {
    expect([method.name, roleRefusal(ANY_CALLER, method)]).toEqual([method.name, undefined]);
    expect(roleRefusal({ ...ANY_CALLER, may: new Set() }, method)?.reason).toBe('CALLER_FORBIDDEN');
  }
});

test('a method or service that the table of roles does not list is forbidden to all callers', () => {
  const [service] = LISTED;
  const unlisted = [
    { parent: { typeName: 'leadintake.v1.LaterService' }, name: 'ListLeads', localName: 'listLeads' },
    { parent: service, name: 'Later', localName: 'later' },
  ] as unknown as DescMethod[];
  for (const method of unlisted) expect(roleRefusal(ANY_CALLER, method)?.reason).toBe('CALLER_FORBIDDEN');
  expect(mayUse(ANY_CALLER, 'leadintake.v1.LaterService')).toBe(false);
  expect(mayUse(ANY_CALLER, '')).toBe(true);
});

// @proves bounds-40
test('all tokens of a caller share its number of streams, and other callers have their own', async () => {
  const [former, next, other] = [newCoreToken(), newCoreToken(), newCoreToken()];
  const both = { may: ['crm'] as const, tokens: [former, next].map((token) => ({ sha256: tokenHash(token) })) };
  const { path } = writeCallersFile({ crm: both, sales: entry(other, ['crm']) });
  const { caller } = await aCore({ CORE_CALLERS_FILE: path });
  await caller.call('DirectoryService/PutStudio', { studio: { id: 'studio-1', status: 'STUDIO_STATUS_ACTIVE' } });
  await caller.call('LeadIntakeService/CreateLead', aCreateLeadRequest('studio-1'));
  const streamAs = (token: string, method: string) =>
    caller.stream<object>(`LeadIntakeService/${method}`, {}, { authorization: `Bearer ${token}` });
  const exportAs = (token: string) => Array.fromAsync(streamAs(token, 'ExportLeads'));
  const watches = times(MAX_STREAMS_PER_CALLER, (index) =>
    streamAs(index % 2 === 0 ? former : next, 'WatchLeadChanges'),
  );
  // Each watch gets the lead and waits for more.
  await Promise.all(watches.map((watch) => watch[Symbol.asyncIterator]().next()));

  for (const token of [former, next]) {
    await expect(exportAs(token)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  }
  expect(await exportAs(other)).toHaveLength(1);
  watches[0]?.cancel();
  await expect.poll(() => exportAs(next).catch(() => [])).toHaveLength(1);
  for (const watch of watches) watch.cancel();
});

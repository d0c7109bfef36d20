import { createHash } from 'node:crypto';
import { appendFileSync, copyFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { parseCallers, tokenHash } from '../../src/callers-file.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { acknowledgeIn, changesIn, moveLead } from '../contract/store-actions.ts';
import { aConsumer, aLead, aLoggedRequest, BY, claimsOf, DAY_MS, plus, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { leadsIn } from '../support/exported.ts';
import { bash, run, temporaryFolder } from '../tools/processes.ts';

/** The command line on a separate database: resolves with the output, or rejects with the status and standard error. */
function commandLine() {
  const path = join(temporaryFolder(), 'leads.db');
  const env = { DATABASE_URL: `sqlite:${path}` };
  const cli = async (...args: string[]) => (await executed(CLI, args, { env })).stdout;
  /** The same for a command that reads its standard input. */
  const given = async (input: unknown, ...args: string[]) => {
    const text = typeof input === 'string' ? input : JSON.stringify(input);
    return (await executed(CLI, args, { env, input: text })).stdout;
  };
  return { path, env, cli, given, json: async (...args: string[]) => JSON.parse(await cli('--json', ...args)) };
}

/** Ends a studio without the wait of `studios erase`. */
async function endStudio(path: string, studioId: string): Promise<void> {
  const store = openSqliteStore(path);
  await store.endStudio(studioId, { ...BY, now: new Date() });
  await store.close();
}

// @proves audit-3
test('an event of a command names who has called sudo, whoever runs the process', async () => {
  const { env, json } = commandLine();
  const { username } = userInfo();
  for (const [index, SUDO_USER] of ['', username, 'ada', 'x'.repeat(100)].entries()) {
    const status = index % 2 === 0 ? 'active' : 'suspended';
    await executed(CLI, ['studios', 'put', 's1', '--status', status], { env: { ...env, SUDO_USER } });
  }
  const callers: string[] = (await json('audit', 's1')).map(({ caller }: { caller: string }) => caller);
  const user = (by: string) => `(command line, ${username}${by} on ${hostname().slice(0, 64)})`;
  expect([...new Set(callers)]).toEqual([user(` for ${'x'.repeat(64)}`), user(' for ada'), user('')]);
});

test('an operator sets up a studio, and issues, replaces, lists and revokes a key, as text and as JSON', async () => {
  const { cli, json } = commandLine();
  expect(await json('studios', 'put', 's1', '--region', 'DE')).toEqual({
    id: 's1',
    status: 'active',
    regionCode: 'DE',
    quotaLimit: null,
    keepEnquiries: true,
    isTest: false,
    retentionDays: null,
  });
  expect(await json('studios', 'put', 's1', '--keep-enquiries', 'no')).toMatchObject({ keepEnquiries: false });
  expect(await json('studios', 'put', 's1', '--status', 'suspended', '--member', 'the-boss')).toMatchObject({
    status: 'suspended',
    regionCode: 'DE',
  });
  expect(await json('studios', 'put', 's1', '--region', 'none')).toMatchObject({
    status: 'suspended',
    regionCode: null,
  });
  expect(await json('studios', 'get', 's1')).toMatchObject({ status: 'suspended', regionCode: null });
  expect(await json('studios', 'put', 's1', '--quota', '5000')).toMatchObject({ quotaLimit: 5000 });
  expect(await json('studios', 'put', 's1', '--status', 'suspended')).toMatchObject({ quotaLimit: 5000 });
  expect(await json('studios', 'put', 's1', '--quota', 'default')).toMatchObject({ quotaLimit: null });
  await cli('members', 'put', 's1', 'owner', '--role', 'owner');
  const source = await json('sources', 'put', 's1', '--name', 'Form');
  expect(await json('sources', 'put', 's1', source.id, '--name', 'Old form', '--disabled')).toMatchObject({
    enabled: false,
  });
  expect(await json('sources', 'list', 's1')).toEqual([
    { studioId: 's1', id: source.id, name: 'Old form', enabled: false },
  ]);

  expect(await json('sources', 'remove', 's1', source.id)).toMatchObject({ removed: { id: source.id } });

  const manager = ['s1', '--member', 'owner'];
  const created = await json('keys', 'create', ...manager, '--name', 'Site', '--scope', 'leads.create', '--days', '30');
  expect(created).toMatchObject({ scopes: ['leads.create'], secret: expect.stringMatching(/^lik_/) });
  const quota = (...args: string[]) => json('keys', 'quota', 's1', created.id, ...args);
  expect(await quota('40', '--member', 'the-boss')).toMatchObject({ id: created.id, quotaLimit: 40 });
  expect(await quota('default')).toMatchObject({ quotaLimit: null });
  const replaced = await json('keys', 'replace', 's1', created.id, '--member', 'owner');
  expect(replaced).toMatchObject({ id: created.id, expiresAt: created.expiresAt });
  expect(replaced.secret).not.toBe(created.secret);
  const revoked = await json('keys', 'revoke', 's1', created.id, '--member', 'owner');
  expect(revoked.revokedAt).toEqual(expect.any(String));

  const events = await json('audit', 'show', 's1');
  const caller = `(command line, ${userInfo().username} on ${hostname().slice(0, 64)})`;
  expect(
    events.map((event: Record<string, unknown>) => [event.action, event.memberId, event.caller, event.to]),
  ).toEqual([
    ['api-key-revoked', 'owner', caller, null],
    ['api-key-replaced', 'owner', caller, null],
    ['api-key-quota-changed', null, caller, null],
    ['api-key-quota-changed', 'the-boss', caller, '40'],
    ['api-key-created', 'owner', caller, null],
    ['studio-source-changed', null, caller, null],
    ['studio-source-changed', null, caller, `${source.id} disabled`],
    ['studio-source-changed', null, caller, `${source.id} enabled`],
    ['studio-member-changed', null, caller, 'owner owner'],
    ['studio-quota-changed', null, caller, null],
    ['studio-quota-changed', null, caller, '5000'],
    ['studio-region-changed', null, caller, null],
    ['studio-status-changed', 'the-boss', caller, 'suspended'],
    ['studio-enquiries-changed', null, caller, 'not kept'],
    ['studio-region-changed', null, caller, 'DE'],
    ['studio-status-changed', null, caller, 'active'],
  ]);

  const listed = await cli('keys', 'list', ...manager);
  expect(listed).toContain(created.id);
  expect(listed).not.toContain('lik_');
  expect(await json('members', 'remove', 's1', 'owner')).toEqual({
    removed: { studioId: 's1', id: 'owner', role: 'owner' },
  });
  expect(await json('members', 'remove', 's1', 'owner')).toEqual({ removed: null });
});

// @proves requests-1
test('an operator sees what the websites of a studio sent, in a table that fits into a terminal, and one request in full', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  const store = openSqliteStore(path);
  const own = { studioId: 's1', apiKeyId: newId() };
  const [refused, replayed, cut] = [
    aLoggedRequest({ ...own, requestId: 'r.1', omitted: 7 }),
    aLoggedRequest({ ...own, status: 201, code: null, faultyFields: [], replayed: true }),
    aLoggedRequest({ ...own, status: null, code: null, faultyFields: [] }),
  ] as const;
  const others = times(120, () => aLoggedRequest({ studioId: 's1', code: 'integration_idempotency_conflict' }));
  await store.recordRequests([refused, replayed, cut, ...others]);
  await store.close();
  const ids = (found: readonly { requestId: string }[]) => found.map(({ requestId }) => requestId);
  expect(ids(await json('requests', 's1'))).toEqual(ids([refused, replayed, cut, ...others].toReversed()));
  expect(ids(await json('requests', 's1', '--failed', '--key', own.apiKeyId))).toEqual(ids([cut, refused]));
  const table = await cli('requests', 's1');
  for (const line of table.split('\n')) expect(line.length).toBeLessThanOrEqual(120);
  for (const text of ['201 replayed', '400 invalid_request', 'not answered', 'note, Idempotency-Key', '+7', 'a1B_'])
    expect(table).toContain(text);
  const one = await cli('requests', 's1', '--request-id', 'r.1');
  for (const text of [own.apiKeyId, 'integration_invalid_request', 'r.1']) expect(one).toContain(text);
  expect(await cli('requests', 's1', '--request-id', 'none')).toBe('none\n');
});

// @proves bounds-116
test('an operator sets how long a studio keeps closed leads, once it is known how many would go', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  const store = openSqliteStore(path);
  for (const daysAgo of [30, 32, 400]) {
    const createdAt = plus(new Date(), -daysAgo * DAY_MS);
    const lead = aLead({ studioId: 's1', createdAt, stage: 'lost' });
    await store.createLead(lead, claimsOf(lead));
  }
  await store.close();
  const counted = await json('studios', 'try-retention', 's1', '30');
  expect(counted).toEqual({ wouldErase: 2, isLowerBound: false, unchangedSince: expect.any(String) });
  expect(Date.now() - Date.parse(counted.unchangedSince)).toBeGreaterThanOrEqual(31 * DAY_MS);
  expect(await json('studios', 'get', 's1')).toMatchObject({ retentionDays: null });
  for (const days of ['29', '3651', '30.5', '1e9', 'soon', '-5'])
    await expect(cli('studios', 'try-retention', 's1', '--', days)).rejects.toMatchObject({ code: 1, stdout: '' });
  await expect(cli('studios', 'try-retention', 's2', '30')).rejects.toThrow('STUDIO_NOT_FOUND');

  const put = await json('studios', 'put', 's1', '--retention', '30');
  expect(put.retentionDays).toBe(30);
  expect(Date.parse(put.firstErasure) - Date.now()).toBeGreaterThan(6 * DAY_MS);
  expect(await json('studios', 'put', 's1', '--retention', 'none', '--member', 'the-boss')).not.toHaveProperty(
    'firstErasure',
  );
  for (const days of ['29', '3651', '0', 'soon', '']) {
    await expect(cli('studios', 'put', 's1', `--retention=${days}`)).rejects.toMatchObject({ code: 1, stdout: '' });
  }
  expect((await json('audit', 's1')).slice(0, 2)).toMatchObject([
    { action: 'studio-retention-changed', memberId: 'the-boss', from: '30', to: null },
    { action: 'studio-retention-changed', from: null, to: '30' },
  ]);
});

test('an operator empties a test studio, and no other; exports and consumers have its leads if they ask', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  expect(await json('studios', 'put', 'trial', '--test')).toMatchObject({ isTest: true });
  expect(await json('studios', 'put', 'trial', '--quota', '5')).toMatchObject({ isTest: true, quotaLimit: 5 });
  await expect(cli('studios', 'put', 's1', '--test')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('studio.isTest must stay as it was when the studio was created'),
  });
  const store = openSqliteStore(path);
  for (const studioId of ['s1', 'trial', 'trial']) {
    const lead = aLead({ studioId });
    await store.createLead(lead, claimsOf(lead));
  }
  await store.close();

  const studiosIn = async (...options: string[]) =>
    leadsIn(await cli('leads', 'export', ...options)).map(({ studioId }) => studioId);
  expect(await studiosIn()).toEqual(['s1']);
  expect(await studiosIn('--include-test-studios')).toEqual(['s1', 'trial', 'trial']);
  expect(await studiosIn('--studio', 'trial')).toEqual(['trial', 'trial']);
  const create = ['consumers', 'create', 'relay', '--all-studios', '--start', 'all-leads'];
  expect(await json(...create, '--include-test-studios')).toMatchObject({ studios: '(all, and test studios)' });
  await expect(cli(...create)).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^CONSUMER_EXISTS: /) });
  await expect(cli('studios', 'empty', 's1')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^NOT_A_TEST_STUDIO: /),
  });
  expect(await json('studios', 'empty', 'trial')).toEqual({ deleted: 2 });
  expect(await json('studios', 'empty', 'trial')).toEqual({ deleted: 0 });
  expect(await studiosIn('--include-test-studios')).toEqual(['s1']);
});

test('an operator ends a studio and erases what it has, once its id is given again', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  await cli('members', 'put', 's1', 'owner', '--role', 'owner');
  await cli('sources', 'put', 's1', '--name', 'Form');
  await cli('keys', 'create', 's1', '--member', 'owner', '--name', 'Site');
  const store = openSqliteStore(path);
  const leads = times(3, () => aLead({ studioId: 's1' }));
  for (const lead of leads) await store.createLead(lead, claimsOf(lead));
  await store.close();
  const refused = (pattern: RegExp) => ({ code: 1, stderr: expect.stringMatching(pattern) });

  expect(await json('studios', 'erase', 's1')).toEqual({
    leadsToErase: 3,
    keysToRevoke: 1,
    sourcesToRemove: 1,
  });
  await expect(cli('studios', 'erase', 's1', '--confirm', 's2')).rejects.toMatchObject(
    refused(/--confirm names another/),
  );
  expect(await json('studios', 'get', 's1')).toMatchObject({ status: 'active' });
  // It waits until no creation that had begun can be written.
  expect(await json('studios', 'erase', 's1', '--confirm', 's1')).toEqual({
    erasedLeads: 3,
    skippedLeads: 0,
    revokedKeys: 1,
    removedMembers: 1,
    removedSources: 1,
  });
  expect(await json('studios', 'get', 's1')).toMatchObject({ status: 'ended' });
  const caller = expect.stringMatching(/^\(command line, .+ on .+\)$/);
  expect(await json('audit', 's1')).toContainEqual(
    expect.objectContaining({ action: 'studio-status-changed', from: 'active', to: 'ended', caller }),
  );
  await expect(cli('studios', 'put', 's1')).rejects.toMatchObject(refused(/^STUDIO_ENDED: /));
});

test('an operator finds a lead by a contact from standard input', async () => {
  const { path, cli, given } = commandLine();
  await cli('studios', 'put', 's1');
  const store = openSqliteStore(path);
  const lead = aLead({ studioId: 's1' });
  await store.createLead(lead, claimsOf(lead));
  await store.close();

  const find = (input: unknown) => given(input, '--json', 'leads', 'find', 's1');
  expect(JSON.parse(await find(lead.contact))).toMatchObject([{ id: lead.id }]);
  for (const input of ['', '"x"', { type: 'fax', value: '1' }, { ...lead.contact, more: 1 }]) {
    await expect(find(input)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'the standard input must be a JSON object with a type, email or phone, and a value\n',
    });
  }
  // As JSON in any case.
  expect(JSON.parse(await given(lead.contact, 'leads', 'export-contact', 's1'))).toEqual({
    leads: [
      {
        lead: { ...lead, createdAt: lead.createdAt.toISOString(), updatedAt: lead.updatedAt.toISOString() },
        idempotencyKey: expect.any(String),
        original: null,
      },
    ],
    mayBeIncomplete: false,
    skippedCount: 0,
  });
  await expect(given(lead.contact, 'leads', 'export-contact', 's2')).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^STUDIO_NOT_FOUND: /),
  });
  expect(JSON.parse(await given(lead.contact, '--json', 'leads', 'erase-contact', 's1'))).toMatchObject({
    erasedCount: 1,
  });
  expect(JSON.parse(await find(lead.contact))).toEqual([]);
});

test('an operator lists studios and the newest leads of one, reads a lead, and exports all', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1', '--status', 'suspended');
  await cli('studios', 'put', 's2');
  const store = openSqliteStore(path);
  const leads = times(61, (index) => aLead({ studioId: index < 30 ? 's1' : 's2' }));
  for (const lead of leads) await store.createLead(lead, claimsOf(lead));
  await store.close();
  const newest = leads.toReversed();
  const [lead] = newest as [Lead];
  const idsOf = (of: readonly Lead[]) => of.map(({ id }) => id);

  expect(await json('studios', 'list')).toMatchObject([{ id: 's1', status: 'suspended' }, { id: 's2' }]);
  expect((await json('studios', 'list'))[0]).not.toHaveProperty('leads');
  expect(await json('studios', 'list', '--leads')).toMatchObject([
    { id: 's2', leads: 31 },
    { id: 's1', leads: 30 },
  ]);
  expect(idsOf(await json('leads', 'list', '--studio', 's2'))).toEqual(idsOf(newest.slice(0, 25)));
  const listed = await json('leads', 'list', '--studio', 's2', '--limit', '30');
  expect(listed).toEqual(JSON.parse(JSON.stringify(newest.slice(0, 30))));
  expect(await cli('leads', 'list', '--studio', 's2', '--limit', '1')).toContain(lead.contact.value);
  expect(await json('leads', 'get', '--studio', 's2', lead.id)).toEqual(JSON.parse(JSON.stringify(lead)));

  const since = lead.createdAt.toISOString();
  const ofTwo = ['--stage', 'lost', 'new', '--created-since', since];
  const changed = newest.filter(({ studioId, createdAt }) => studioId === 's2' && createdAt >= lead.createdAt);
  expect(idsOf(await json('leads', 'list', '--studio', 's2', '--limit', '60', ...ofTwo))).toEqual(idsOf(changed));
  for (const none of [
    ['--stage', 'won'],
    ['--source', lead.id],
    ['--api-key', lead.id],
    ['--changed-since', '2999-01-01'],
  ])
    expect(await json('leads', 'list', '--studio', 's2', ...none)).toEqual([]);
  await expect(cli('leads', 'list', '--studio', 's2', '--source', 'form')).rejects.toThrow(/filter.sourceIds/);

  await cli('leads', 'stage', 's2', lead.id, 'contacted', '--member', 'seller-1');
  await cli('leads', 'stage', 's2', lead.id, 'new');
  const moves = [{ memberId: 'seller-1', what: { kind: 'stage-move', from: 'new', to: 'contacted' } }, {}];
  expect(await json('leads', 'events', '--studio', 's2', lead.id)).toMatchObject(moves);
  expect(await cli('leads', 'events', '--studio', 's2', lead.id)).toMatch(/seller-1.*stage-move/);

  const counts = await json('leads', 'count', '--studio', 's2', '--stage', 'new');
  expect(counts).toMatchObject({ byStage: [{ of: 'new', count: 31 }], bySource: [{ of: null, count: 31 }] });
  expect(await cli('leads', 'count', '--studio', 's2')).toMatch(/trial_booked.*no source.*31/s);

  const exported = async (...args: string[]) => leadsIn(await cli('leads', 'export', ...args)).map(({ id }) => id);
  expect(await exported()).toEqual(idsOf(leads));
  expect(await exported('--studio', 's2', '--changed-since', since)).toEqual(idsOf(changed.toReversed()));
  expect(await exported('--studio', 's2')).toEqual(idsOf(leads.slice(30)));
});

// @proves commands-1
test.each([
  [
    'a refusal with its reason and the faulty fields',
    ['studios', 'put', 'not an id'],
    ['INVALID_REQUEST', 'studio.id'],
  ],
  ['an unknown studio', ['keys', 'list', 'nowhere', '--member', 'm'], ['STUDIO_NOT_FOUND']],
  ['an export of an unknown studio', ['leads', 'export', '--studio', 's3'], ['STUDIO_NOT_FOUND']],
  ['an unknown stage', ['leads', 'stage', 's1', 'x', 'sold'], ['Allowed choices are new, contacted']],
  ['a quota that is not a number', ['keys', 'quota', 's1', 'x', 'many'], ['must be a whole number, at least 1']],
  ['a missing option', ['keys', 'create', 's1', '--name', 'n'], ["required option '--member"]],
])('%s: is reported on standard error, with status 1', async (_, args, messages) => {
  const { cli } = commandLine();
  await cli('studios', 'put', 's1');

  const failure = await cli(...args).catch((error) => error);

  expect(failure).toMatchObject({ code: 1, stdout: '' });
  for (const text of messages) expect(failure.stderr).toContain(text);
});

// @proves feed-7
test('an operator watches changes without acknowledging them, and resends those of a studio', async () => {
  const { path, env, cli, json } = commandLine();
  await cli('studios', 'put', 'studio-1');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const create = async (lead = aLead()) => {
    await store.createLead(lead, claimsOf(lead));
    return lead;
  };
  const first = await create();
  const watching = run('operator/cli.ts', { args: ['changes', 'watch'], env });
  await watching.printed(/^1 lead waits, the first since /m);
  await watching.printed(new RegExp(`studio-1  ${first.id}  revision 0  new  created`));
  const second = await create();
  await watching.printed(new RegExp(`studio-1  ${second.id}  revision 0  new  created`));
  watching.child.kill('SIGINT');
  expect(await watching.ended()).toBe(0);

  const waiting = await changesIn(store);
  expect(waiting.map(({ lead }) => lead.id)).toEqual([first.id, second.id]);
  await acknowledgeIn(store, waiting);
  expect(await json('changes', 'resend', 'studio-1')).toEqual({ resent: 2 });
  expect(await json('changes', 'resend')).toEqual({ resent: 2 });
  expect((await changesIn(store)).map(({ lead }) => lead.id).sort()).toEqual([first.id, second.id].sort());
});

// @proves feed-10 backups-3
test('an operator notes a restore: consumers look behind the backup, or behind the given time, or at all leads', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 'studio-1');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const lead = aLead();
  await store.createLead(lead, claimsOf(lead));
  const relay = await store.createConsumer(aConsumer({ name: 'relay', studioIds: null }), BY);
  const acknowledgement = { studioId: 'studio-1', leadId: lead.id, revision: 2 ** 51 };
  if (relay.kind !== 'created') expect.fail(relay.kind);
  await acknowledgeIn(store, await changesIn(store));
  await store.acknowledgeDeliveries(relay.consumer.number, [acknowledgement]);

  for (const [args, restoredTo] of [
    [['--to', '2026-05-01T00:00:00Z'], '2026-04-30T23:55:00.000Z'],
    // Consumers may have heard of none of them.
    [['--to', '2026-06-01'], '2026-04-30T23:55:00.000Z'],
    // It was backed up after the former restore.
    [[], '2026-04-30T23:55:00.000Z'],
  ] as const) {
    const now = Date.now();
    const noted = await json('restored', ...args);
    expect(noted).toEqual({ epoch: expect.any(Number), restoredTo, resent: 1 });
    expect(noted.epoch).toBeGreaterThanOrEqual(now);
    const sent = [
      ...(await changesIn(store)),
      ...((await store.listDeliveries(relay.consumer.number, 9))?.changes ?? []),
    ];
    expect(sent.map((change) => change.lead.id)).toEqual([lead.id, lead.id]);
    for (const { revision } of sent) expect(revision).toBeGreaterThanOrEqual(now + 86_400_000);
    // That of a state of before, which a clock had stamped that was an hour ahead.
    const late = { ...acknowledgement, revision: now + 3_600_000 };
    expect(await store.acknowledgeDeliveries(relay.consumer.number, [late])).toMatchObject({ settled: 0 });
  }
  for (const time of ['2999-01-01', 'soon']) await expect(json('restored', '--to', time)).rejects.toThrow(/--to/);
  const other = commandLine();
  await other.cli('studios', 'put', 'studio-1');
  expect(await other.json('restored')).toMatchObject({ restoredTo: '1970-01-01T00:00:00.000Z', resent: 0 });
});

// @proves feed-7
test('an operator creates, lists and removes consumers of the change feed, and resends leads to one', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 'studio-1');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const lead = aLead();
  await store.createLead(lead, claimsOf(lead));

  const created = { name: 'relay', studios: ['studio-1'], backfilling: false };
  expect(await json('consumers', 'create', 'relay', 'studio-1', '--start', 'now')).toMatchObject(created);
  expect(await json('consumers', 'create', 'copy', '--all-studios', '--start', 'all-leads')).toMatchObject({
    studios: '(all)',
    backfilling: true,
  });
  await expect(json('consumers', 'create', 'relay', '--all-studios', '--start', 'now')).rejects.toThrow(
    /CONSUMER_EXISTS/,
  );
  await expect(json('consumers', 'create', 'none', '--start', 'now')).rejects.toThrow(/consumer.studioIds/);
  await expect(json('consumers', 'create', 'none', 'studio-2', '--start', 'now')).rejects.toThrow(/STUDIO_NOT_FOUND/);
  expect(await json('changes', 'resend', '--consumer', 'relay')).toEqual({ consumer: 'relay', studios: '(all)' });
  expect(await json('changes', 'resend', 'studio-1', '--consumer', 'relay')).toMatchObject({ studios: 'studio-1' });
  const some = await json('changes', 'resend', 'studio-1', lead.id, '--consumer', 'relay');
  expect(some).toEqual({ consumer: 'relay', studios: 'studio-1', leads: 1 });
  expect(await json('changes', 'resend', 'studio-1', lead.id)).toEqual({ resent: 1 });
  const changed = lead.updatedAt.toISOString();
  for (const args of [[], ['studio-1'], ['--consumer', 'relay'], ['studio-1', '--consumer', 'relay']]) {
    expect(await json('changes', 'resend', ...args, '--changed-since', changed)).toEqual({ resent: 1 });
    expect(await json('changes', 'resend', ...args, '--changed-before', changed)).toEqual({ resent: 0 });
  }
  await expect(json('changes', 'resend', '--consumer', 'nobody')).rejects.toThrow(/CONSUMER_NOT_FOUND/);
  await moveLead(store, lead, 'won');
  expect(await json('consumers', 'list')).toMatchObject([
    { ...created, waiting: 1, since: expect.any(String), backfilling: true },
    { name: 'copy', waiting: 1 },
  ]);
  const byOperator = ['relay', 'studio-1', lead.id];
  expect(await json('consumers', 'set-aside', ...byOperator, '--reason', 'BROKEN')).toEqual({
    setAside: 1,
    unknown: 0,
  });
  await expect(json('consumers', 'set-aside', ...byOperator, '--reason', 'no code')).rejects.toThrow(/reason/);
  expect(await json('consumers', 'list')).toMatchObject([{ name: 'relay', waiting: 0, setAside: 1 }, { name: 'copy' }]);
  const aside = { studioId: 'studio-1', leadId: lead.id, reason: 'BROKEN', attempts: 1, retryAt: null };
  expect(await json('consumers', 'list-set-aside', 'relay')).toMatchObject([aside]);
  expect(await json('consumers', 'take-back', ...byOperator)).toEqual({ takenBack: 1 });
  expect(await json('consumers', 'take-back', 'relay')).toEqual({ takenBack: 0 });
  expect(await json('consumers', 'list-set-aside', 'relay')).toEqual([]);
  expect(await json('consumers', 'remove', 'copy')).toEqual({ removed: true });
  expect(await json('consumers', 'remove', 'copy')).toEqual({ removed: false });
});

// @proves erasure-4
test('an operator erases one lead, and all closed before a day, and repeats the erasures after a restore', async () => {
  const { path, env, cli, json } = commandLine();
  await cli('studios', 'put', 'studio-1');
  await cli('studios', 'put', 'studio-2');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const createdAt = new Date('2023-05-04');
  const leads = times(6, (index) => aLead({ studioId: index === 5 ? 'studio-2' : 'studio-1', createdAt }));
  for (const lead of leads) await store.createLead(lead, claimsOf(lead));
  const [one, old, other, recent, , elsewhere] = leads as [Lead, Lead, Lead, Lead, Lead, Lead];
  const close = ({ studioId, id: leadId, contact }: Lead, day: string) =>
    store.changeLeadStage({
      studioId,
      leadId,
      stage: 'won',
      claims: { ...claimsOf(one), contact },
      expectedUpdatedAt: null,
      memberId: null,
      now: new Date(day),
    });
  for (const lead of [old, other, elsewhere]) await close(lead, '2024-01-01');
  await close(recent, '2024-06-01');
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.prepare('VACUUM INTO ?').run(`${path}.backup`);
  database.close();

  expect(await json('leads', 'erase', 'studio-1', one.id)).toMatchObject({ id: one.id, stage: 'new' });
  const refused = await cli('leads', 'erase', 'studio-1').catch((error) => error);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('no lead given') });
  await expect(json('leads', 'erase', '--closed-before', '2099-02-01', '--yes')).rejects.toThrow(/in the future/);
  expect(await json('leads', 'erase', '--closed-before', '2024-02-01')).toEqual({ wouldErase: 3 });
  expect(await json('leads', 'erase', 'studio-1', '--closed-before', '2024-02-01', '--yes')).toEqual({
    erased: 2,
  });
  expect(await json('leads', 'erase', '--closed-before', '2024-02-01', '--yes')).toEqual({ erased: 1 });
  expect(await json('leads', 'erase', '--closed-before', '2024-02-01', '--yes')).toEqual({ erased: 0 });
  expect((await store.listLeads('studio-1', null, 10)).records.map(({ id }) => id)).toEqual([leads[4]?.id, recent.id]);

  const toFullDisk = await bash('"$CLI" erasures export > /dev/full; echo "status $?"', { ...env, CLI });
  expect(toFullDisk).toMatch(/ENOSPC|no space/i);
  expect(toFullDisk).toMatch(/status 1/);
  const journal = await cli('erasures', 'export');
  expect(
    journal
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).leadId),
  ).toEqual([one, old, other, elsewhere].map(({ id }) => id));
  const file = `${path}.journal`;
  writeFileSync(file, journal + JSON.stringify({ studioId: 'studio-1', leadId: newId() }));
  await store.close();
  for (const each of ['', '-wal', '-shm']) rmSync(path + each, { force: true });
  copyFileSync(`${path}.backup`, path);
  expect(await json('erasures', 'apply', file)).toEqual({
    erased: 4,
    alreadyErased: 0,
    notFound: 1,
    skipped: 0,
  });
  writeFileSync(file, `\uFEFF\r\n${journal.replaceAll('\n', '\r\n\r\n')}`);
  expect(await json('erasures', 'apply', file)).toEqual({
    erased: 0,
    alreadyErased: 4,
    notFound: 0,
    skipped: 0,
  });
  expect(await cli('erasures', 'export')).toMatch(new RegExp(one.id));
  writeFileSync(file, '{}');
  const broken = await cli('erasures', 'apply', file).catch((error) => error);
  expect(broken).toMatchObject({
    code: 1,
    stderr: 'line 1 is not an entry of a journal of erasures; the lines before it were applied\n',
  });
  expect(await json('vacuum')).toMatchObject({ before: expect.any(Number) });
});

test('a demo studio that has ended is no demo: another one is made, and later found', async () => {
  const { path, json } = commandLine();
  expect(await json('demo')).toMatchObject({ studioId: 'demo', secret: expect.stringMatching(/^lik_/) });
  await endStudio(path, 'demo');
  expect(await json('demo')).toMatchObject({ studioId: 'demo-2', secret: expect.stringMatching(/^lik_/) });
  expect(await json('demo')).toMatchObject({ studioId: 'demo-2', secret: null });
});

test('a number of days that no calendar has is refused', async () => {
  const { cli } = commandLine();
  await cli('demo');
  const days = ['--days', '99999999999'];
  for (const command of [
    ['keys', 'ending'],
    ['keys', 'create', 'demo', '--member', 'demo-owner', '--name', 'Website'],
  ])
    await expect(cli(...command, ...days)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: '--days names a time that is too far ahead\n',
    });
});

test('a command whose input is longer than a string can be holds no more of it than it needs', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  const file = `${path}.input`;
  const secret = newKeySecret();
  writeFileSync(file, `${JSON.stringify({ endedStudioId: 's1' })}\n`);
  truncateSync(file, 2 ** 29);
  appendFileSync(file, secret);
  expect(await json('keys', 'find', file)).toMatchObject([{ secretHint: secret.slice(-4) }]);
  await expect(cli('erasures', 'apply', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^the studio s1 was erased, .+\nline 2 is not an entry .+\n$/),
  });
});

// @proves erasure-18
test('the journal of erasures names studios that have ended, and which of them a restore has brought back', async () => {
  const { path, cli, json } = commandLine();
  for (const id of ['gone', 'restored', 'stays']) await cli('studios', 'put', id);
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const [left, back] = ['gone', 'restored'].map((studioId) => aLead({ studioId })) as [Lead, Lead];
  for (const lead of [left, back]) await store.createLead(lead, claimsOf(lead));
  const end = (studioId: string) => store.endStudio(studioId, { ...BY, now: new Date() });
  await end('gone');
  await store.eraseLead({ studioId: 'gone', leadId: left.id, memberId: null, now: new Date() });
  expect(await store.deleteErasedLeads('gone', [left.id], new Date(Date.now() + DAY_MS))).toBe(1);
  expect(await cli('erasures', 'export')).toBe('{"endedStudioId":"gone"}\n');
  const file = `${path}.journal`;
  writeFileSync(
    file,
    ['gone', 'restored', 'unknown'].map((endedStudioId) => JSON.stringify({ endedStudioId })).join('\n'),
  );
  const told = (stderr: string) => ({ code: 1, stderr });
  const REMINDER = 'the studio restored was erased, and is back: erase it again, with `studios erase`\n';
  expect(await cli('erasures', 'apply', file).catch((error) => error)).toMatchObject(told(REMINDER));
  // As if its erasure had been interrupted before the backup.
  await end('restored');
  expect(await cli('erasures', 'apply', file).catch((error) => error)).toMatchObject(told(REMINDER));
  // A backup from between the end and the last erasure: the lines below the end complete it.
  const journal = [{ endedStudioId: 'restored' }, { studioId: 'restored', leadId: back.id }].map((each) =>
    JSON.stringify(each),
  );
  const apply = (...lines: readonly string[]) => {
    writeFileSync(file, lines.join('\n'));
    return json('erasures', 'apply', file);
  };
  expect(await apply(journal[0] ?? '', '{}').catch((error) => error)).toMatchObject(
    told(`${REMINDER}line 2 is not an entry of a journal of erasures; the lines before it were applied\n`),
  );
  expect(await apply(...journal)).toEqual({ erased: 1, alreadyErased: 0, notFound: 0, skipped: 0 });
});

// @proves imports-2
test('an import knows a closed lead again by its UUID in any letter case, as of 1.2, too', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  const file = `${path}.csv`;
  const idsOf = (...ids: readonly string[]) =>
    writeFileSync(
      file,
      `id,displayName,email,stage\n${ids.map((id, index) => `${id},Ada,a${index}@example.org,lost\n`).join('')}`,
    );
  const [id, older] = [newId(), newId()];
  // By the key that earlier releases derived from an id in upper case.
  const hash = createHash('sha256')
    .update(`s1\0${JSON.stringify(older.toUpperCase())}`)
    .digest('hex');
  const key = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  writeFileSync(file, `idempotencyKey,displayName,email,stage\n${key},Ada,a1@example.org,lost\n`);
  expect(await json('leads', 'import', 's1', file)).toMatchObject({ imported: 1 });

  idsOf(id, older);
  expect(await json('leads', 'import', 's1', file)).toMatchObject({ imported: 1, alreadyThere: 1, refused: 0 });
  for (const spelled of [
    [id.toUpperCase(), older.toUpperCase()],
    [id, older],
    [`${id.slice(0, 24)}${id.slice(24).toUpperCase()}`, older],
  ]) {
    idsOf(...spelled);
    expect(await json('leads', 'import', 's1', file)).toMatchObject({ imported: 0, alreadyThere: 2, refused: 0 });
  }
  expect((await cli('leads', 'export', '--byte-order-mark')).slice(0, 3)).toBe('\uFEFFid');
  expect((await cli('leads', 'export')).slice(0, 3)).toBe('id,');
});

test('the keys that end soon are listed, of all studios, and nothing when there is none', async () => {
  const { path, cli, json } = commandLine();
  await cli('studios', 'put', 's1');
  expect(await cli('keys', 'ending')).toBe('');
  for (const studio of ['s1', 's2', 's3']) {
    await cli('studios', 'put', studio);
    await cli('members', 'put', studio, 'boss', '--role', 'owner');
  }
  const create = (studio: string, name: string, days: string) =>
    json('keys', 'create', studio, '--member', 'boss', '--name', name, '--days', days);
  await create('s1', 'Later', '31');
  await create('s1', 'Month', '29');
  await create('s2', 'Week', '6');
  const { id } = await create('s2', 'Revoked', '5');
  await cli('keys', 'revoke', 's2', id);
  await create('s3', 'Ended', '5');
  await endStudio(path, 's3');

  const ending = async (...args: string[]) =>
    (await json('keys', 'ending', ...args)).map((key: Record<string, unknown>) => [key.studioId, key.name, key.issuer]);
  expect(await ending()).toEqual([
    ['s2', 'Week', 'boss'],
    ['s1', 'Month', 'boss'],
  ]);
  expect(await ending('--days', '7')).toEqual([['s2', 'Week', 'boss']]);
  expect(await ending('--days', '3')).toEqual([]);
  expect(await cli('keys', 'ending', '--days', '3')).toBe('');
  expect(await cli('keys', 'ending', '--days', '7')).toContain('Week');
});

// @proves secrets-4
test('the operator finds the owners of leaked keys, and revokes one without being a member', async () => {
  const { cli, given, json } = commandLine();
  await cli('studios', 'put', 's1');
  await cli('members', 'put', 's1', 'boss', '--role', 'owner');
  const create = (name: string) =>
    json('keys', 'create', 's1', '--member', 'boss', '--name', name, '--scope', 'leads.read');
  const [first, second] = [await create('Site'), await create('Shop')];
  const { secret: now } = await json('keys', 'replace', 's1', second.id, '--member', 'boss');
  const unknown = newKeySecret();
  const misspelt = `${first.secret.slice(0, -1)}${first.secret.endsWith('A') ? 'B' : 'A'}`;
  const leaked = `KEY=${first.secret}\n{"old":"${second.secret}"} %20${now} ${misspelt} ${now}, ${unknown} ${first.secret}\n`;

  const found = JSON.parse(await given(leaked, '--json', 'keys', 'find'));
  expect(found).toMatchObject([
    {
      secretHint: first.secretHint,
      opens: 'leads.read',
      studioId: 's1',
      keyId: first.id,
      name: 'Site',
      issuer: 'boss',
      lastUsedAt: null,
    },
    { secretHint: second.secretHint, opens: expect.stringMatching(/^nothing/) },
    { secretHint: now.slice(-4), keyId: second.id, name: 'Shop' },
    { secretHint: unknown.slice(-4), opens: expect.stringMatching(/^nothing/) },
  ]);
  for (const secret of [first.secret, second.secret, now, unknown]) expect(JSON.stringify(found)).not.toContain(secret);

  expect((await json('keys', 'list', 's1')).map(({ id }: { id: string }) => id)).toEqual([second.id, first.id]);
  await cli('keys', 'revoke', 's1', first.id);
  expect(await json('audit', 's1')).toMatchObject([
    {
      action: 'api-key-revoked',
      apiKeyId: first.id,
      memberId: null,
      caller: expect.stringMatching(/^\(command line, .+\)$/),
    },
    {},
    {},
    {},
    {},
    {},
  ]);
  expect(JSON.parse(await given(first.secret, '--json', 'keys', 'find'))).toMatchObject([
    { opens: 'nothing at the moment', revokedAt: expect.any(String) },
  ]);
  const file = join(temporaryFolder(), 'leak');
  const utf16 = Buffer.from(first.secret, 'utf16le');
  for (const [bytes, reason] of [
    [Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), 'is UTF-16'],
    [Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]), 'is UTF-16'],
    [Buffer.concat([Buffer.from('a log\n'), utf16]), 'has keys in UTF-16'],
    [Buffer.concat([Buffer.from('a log\n'), Buffer.from(utf16).swap16()]), 'has keys in UTF-16'],
    [gzipSync(first.secret), 'is packed'],
  ] as const) {
    writeFileSync(file, bytes);
    const stderr = expect.stringMatching(new RegExp(`^the file ${reason}.*\n$`));
    expect(await cli('keys', 'find', file).catch((error) => error)).toMatchObject({ code: 1, stdout: '', stderr });
  }
  // A log that was cut in place while its writer went on.
  writeFileSync(file, Buffer.concat([Buffer.alloc(100_000), Buffer.from(first.secret)]));
  expect(await json('keys', 'find', file)).toMatchObject([{ secretHint: first.secretHint }]);
  const nowhere = await cli('keys', 'find', '/nowhere/at-all').catch((error) => error);
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/ENOENT.*\/nowhere\/at-all/) });
});

test('a token is made with its entry for the file, and each is another one', async () => {
  const make = async () => (await executed(CLI, ['callers', 'token'])).stdout.split('\n');
  const [[token = '', line = ''], [other = '', otherLine = '']] = [await make(), await make()];
  const [entry, otherEntry] = [JSON.parse(line), JSON.parse(otherLine)];
  expect(token).toMatch(/^lic_[\w-]{48}$/);
  expect(other).not.toBe(token);
  expect(entry).toEqual({ sha256: tokenHash(token), created: new Date().toISOString().slice(0, 10) });
  const callers = { website: { may: ['gateway'], tokens: [entry, otherEntry] } };
  expect(parseCallers(JSON.stringify({ callers }))).toEqual(callers);
});

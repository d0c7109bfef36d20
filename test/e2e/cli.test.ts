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
import { aConsumer, aLead, aLoggedRequest, BY, DAY_MS, keysFor, plus, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { COMMANDS } from '../support/every-command.ts';
import { leadsIn } from '../support/exported.ts';
import { bash, run, temporaryFolder } from '../tools/processes.ts';

/** Returns a command line on a separate database. A command that fails rejects with its status and standard error. */
function commandLine() {
  const path = join(temporaryFolder(), 'leads.db');
  const env = { DATABASE_URL: `sqlite:${path}` };
  const cli = async (...args: string[]) => (await executed(CLI, args, { env })).stdout;
  /** Runs a command that reads its standard input. */
  const given = async (input: string, ...args: string[]) => (await executed(CLI, args, { env, input })).stdout;
  return { path, env, cli, given, json: async (...args: string[]) => JSON.parse(await cli('--json', ...args)) };
}

/** Returns a command line on a database with a studio s1 and leads, and its store. */
async function withLeads(...given: readonly Partial<Lead>[]) {
  const line = commandLine();
  await line.cli('studios', 'put', 's1');
  const store = openSqliteStore(line.path);
  onTestFinished(() => store.close());
  const leads = given.map((each) => aLead({ studioId: 's1', ...each }));
  const create = (lead: Lead) => store.createLead(lead, keysFor(lead));
  for (const lead of leads.filter(({ studioId }) => studioId === 's1')) await create(lead);
  const end = (studioId: string) => store.endStudio(studioId, { ...BY, now: new Date() });
  return { ...line, store, leads: leads as [Lead, ...Lead[]], create, end };
}

const CALLER = `(command line, ${userInfo().username} on ${hostname().slice(0, 64)})`;

/** Matches the rejection of a command that fails with a pattern on standard error. */
const refused = (pattern: RegExp) => ({ code: 1, stdout: '', stderr: expect.stringMatching(pattern) });

test('every command takes the studio as an argument, never as an option', () => {
  const options = COMMANDS.flatMap(([name, { options }]) => options.map(({ long }) => `${name} ${long}`));
  expect(options.length).toBeGreaterThan(30);
  expect(options.filter((option) => option.endsWith(' --studio'))).toEqual([]);
});

// @proves audit-2
test('an audit event of a command names the user who ran sudo', async () => {
  const { env, json } = commandLine();
  for (const [index, SUDO_USER] of ['', 'ada', 'x'.repeat(100)].entries()) {
    const status = index % 2 === 0 ? 'active' : 'suspended';
    await executed(CLI, ['studios', 'put', 's1', '--status', status], { env: { ...env, SUDO_USER } });
  }
  const callers: string[] = (await json('audit', 's1')).map(({ caller }: { caller: string }) => caller);
  const user = (by: string) => CALLER.replace(' on ', `${by} on `);
  expect([...new Set(callers)]).toEqual([user(` for ${'x'.repeat(64)}`), user(' for ada'), user('')]);
});

test('an operator sets up a studio and issues, replaces, lists and revokes a key', async () => {
  const { cli, json } = commandLine();
  const put = (...args: string[]) => json('studios', 'put', 's1', ...args);
  const fresh = {
    id: 's1',
    status: 'active',
    quotaLimit: null,
    keepEnquiries: true,
    isTest: false,
    retentionDays: null,
  };
  expect(await put('--region', 'DE')).toEqual({ ...fresh, regionCode: 'DE' });
  await put('--keep-enquiries', 'no', '--status', 'suspended', '--member', 'the-boss');
  await put('--region', 'none', '--quota', '5000');
  const changed = { ...fresh, status: 'suspended', regionCode: null, quotaLimit: 5000, keepEnquiries: false };
  expect(await json('studios', 'get', 's1')).toEqual(changed);
  expect(await put('--quota', 'default')).toEqual({ ...changed, quotaLimit: null });
  await cli('members', 'put', 's1', 'owner', '--role', 'owner');
  const source = await json('sources', 'put', 's1', '--name', 'Form');
  const off = { studioId: 's1', id: source.id, name: 'Old form', enabled: false };
  expect(await json('sources', 'put', 's1', source.id, '--name', 'Old form', '--disabled')).toEqual(off);
  expect(await json('sources', 'list', 's1')).toEqual([off]);
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
  const listed = await cli('keys', 'list', ...manager);
  expect(listed).toContain(created.id);
  expect(listed).not.toContain('lik_');
  const member = { studioId: 's1', id: 'owner', role: 'owner' };
  for (const removed of [member, null]) expect(await json('members', 'remove', 's1', 'owner')).toEqual({ removed });

  const events: Record<string, unknown>[] = await json('audit', 'show', 's1');
  expect(new Set(events.map(({ caller }) => caller))).toEqual(new Set([CALLER]));
  for (const [action, memberId, to] of [
    ['api-key-revoked', 'owner', null],
    ['api-key-quota-changed', 'the-boss', '40'],
    ['studio-source-changed', null, `${source.id} disabled`],
    ['studio-status-changed', 'the-boss', 'suspended'],
  ])
    expect(events).toContainEqual(expect.objectContaining({ action, memberId, to }));
});

// @proves requests-1
test('an operator sees the requests of a studio in an 80-column table, and one request in full', async () => {
  const { store, env, cli, json } = await withLeads();
  const { stdout, stderr } = await executed(CLI, ['requests', 's1'], { env });
  expect([stdout, stderr]).toEqual(['none\n', expect.stringMatching(/^no request was found.*GATEWAY_REQUEST_LOG=yes/)]);
  const own = { studioId: 's1', apiKeyId: newId() };
  const recorded = [
    aLoggedRequest({ ...own, requestId: 'r.1', omitted: 7 }),
    aLoggedRequest({ ...own, status: 201, code: null, faultyFields: [], replayed: true }),
    aLoggedRequest({ ...own, status: null, code: null, faultyFields: [] }),
    ...times(120, () => aLoggedRequest({ studioId: 's1', code: 'integration_idempotency_conflict' })),
  ];
  await store.recordRequests(recorded);
  const ids = (found: readonly { requestId: string }[]) => found.map(({ requestId }) => requestId);
  expect(ids(await json('requests', 's1'))).toEqual(ids(recorded.toReversed()));
  const [refusedOne, , cut] = ids(recorded);
  expect(ids(await json('requests', 's1', '--failed', '--key', own.apiKeyId))).toEqual([cut, refusedOne]);
  const table = await cli('requests', 's1');
  for (const line of table.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  for (const text of ['201 replayed', 'invalid_request', 'not answered', 'note,', 'Idempotency-Key', '+7', 'a1B_'])
    expect(table).toContain(text);
  const one = await cli('requests', 's1', '--request-id', 'r.1');
  for (const text of [own.apiKeyId, 'integration_invalid_request', 'r.1']) expect(one).toContain(text);
  expect(await cli('requests', 's1', '--request-id', 'none')).toBe('none\n');
});

// @proves bounds-116
test('an operator previews the erasures of a retention period before setting it', async () => {
  const old = [30, 32, 400].map((days) => ({ createdAt: plus(new Date(), -days * DAY_MS), stage: 'lost' }) as const);
  const { json } = await withLeads(...old);
  const counted = await json('studios', 'try-retention', 's1', '30');
  expect(counted).toEqual({ wouldErase: 2, isLowerBound: false, unchangedSince: expect.any(String) });
  expect(Date.now() - Date.parse(counted.unchangedSince)).toBeGreaterThanOrEqual(31 * DAY_MS);
  expect(await json('studios', 'get', 's1')).toMatchObject({ retentionDays: null });
  const put = await json('studios', 'put', 's1', '--retention', '30');
  expect(put.retentionDays).toBe(30);
  expect(Date.parse(put.firstErasure) - Date.now()).toBeGreaterThan(6 * DAY_MS);
  expect(await json('studios', 'put', 's1', '--retention', 'none')).not.toHaveProperty('firstErasure');
  for (const days of ['29', '30.5', '1e9', 'soon', '']) {
    for (const args of [
      ['try-retention', 's1', '--', days],
      ['put', 's1', `--retention=${days}`],
    ])
      await expect(json('studios', ...args)).rejects.toMatchObject({ code: 1, stdout: '' });
  }
});

test('an operator can empty only test studios; exports and consumers see their leads on request', async () => {
  const { create, cli, json } = await withLeads({});
  expect(await json('studios', 'put', 'trial', '--test')).toMatchObject({ isTest: true });
  for (const lead of times(2, () => aLead({ studioId: 'trial' }))) await create(lead);

  const studiosIn = async (...options: string[]) =>
    leadsIn(await cli('leads', 'export', ...options)).map(({ studioId }) => studioId);
  expect(await studiosIn()).toEqual(['s1']);
  expect(await studiosIn('--include-test-studios')).toEqual(['s1', 'trial', 'trial']);
  expect(await studiosIn('trial')).toEqual(['trial', 'trial']);
  const relay = ['consumers', 'create', 'relay', '--all-studios', '--start', 'all-leads', '--include-test-studios'];
  expect(await json(...relay)).toMatchObject({ studios: '(all, and test studios)' });
  await expect(cli('studios', 'empty', 's1')).rejects.toMatchObject(refused(/^NOT_A_TEST_STUDIO: /));
  for (const deleted of [2, 0]) expect(await json('studios', 'empty', 'trial')).toEqual({ deleted });
});

test('an operator erases a studio after confirming its id', async () => {
  const { cli, json } = await withLeads({}, {}, {});
  await cli('members', 'put', 's1', 'owner', '--role', 'owner');
  await cli('sources', 'put', 's1', '--name', 'Form');
  await cli('keys', 'create', 's1', '--member', 'owner', '--name', 'Site');

  const counts = { leadsToErase: 3, keysToRevoke: 1, sourcesToRemove: 1 };
  expect(await json('studios', 'erase', 's1')).toEqual(counts);
  await expect(cli('studios', 'erase', 's1', '--confirm', 's2')).rejects.toThrow(/--confirm names another/);
  expect(await json('studios', 'get', 's1')).toMatchObject({ status: 'active' });
  // The command waits until creations that have already begun can no longer be written.
  const gone = { erasedLeads: 3, skippedLeads: 0, revokedKeys: 1, removedMembers: 1, removedSources: 1 };
  expect(await json('studios', 'erase', 's1', '--confirm', 's1')).toEqual(gone);
  expect(await json('studios', 'get', 's1')).toMatchObject({ status: 'ended' });
  const end = { action: 'studio-status-changed', from: 'active', to: 'ended', caller: CALLER };
  expect(await json('audit', 's1')).toContainEqual(expect.objectContaining(end));
});

test('an operator finds, exports and erases the leads of a contact given on standard input', async () => {
  const { given, leads } = await withLeads({});
  const [lead] = leads;
  const contact = JSON.stringify(lead.contact);
  const find = async (input = contact) => JSON.parse(await given(input, '--json', 'leads', 'find', 's1'));
  expect(await find()).toMatchObject([{ id: lead.id }]);
  const sentence = /^the standard input must be a JSON object with a type, email or phone, and a value\n$/;
  for (const input of ['', '"x"', '{"type":"fax","value":"1"}', contact.replace('{', '{"more":1,')])
    await expect(find(input)).rejects.toMatchObject(refused(sentence));
  // This command always prints JSON.
  expect(JSON.parse(await given(contact, 'leads', 'export-contact', 's1'))).toEqual({
    leads: [{ lead: JSON.parse(JSON.stringify(lead)), idempotencyKey: expect.any(String), original: null }],
    mayBeIncomplete: false,
    skippedCount: 0,
  });
  const elsewhere = given(contact, 'leads', 'export-contact', 's2');
  await expect(elsewhere).rejects.toMatchObject(refused(/^STUDIO_NOT_FOUND: /));
  const erased = JSON.parse(await given(contact, '--json', 'leads', 'erase-contact', 's1'));
  expect(erased).toMatchObject({ erasedCount: 1 });
  expect(await find()).toEqual([]);
});

test('an operator lists studios and leads, reads and moves a lead, and exports all leads', async () => {
  const { create, cli, json, leads } = await withLeads(
    ...times(30, () => ({})),
    ...times(31, () => ({ studioId: 's2' })),
  );
  await cli('studios', 'put', 's2');
  for (const each of leads.slice(30)) await create(each);
  const newest: Lead[] = JSON.parse(JSON.stringify(leads.toReversed()));
  const [lead] = newest as [Lead];
  const listIds = (listed: readonly { id: string }[]) => listed.map(({ id }) => id);
  const list = (...args: string[]) => json('leads', 'list', 's2', ...args);

  expect((await json('studios', 'list'))[0]).not.toHaveProperty('leads');
  const counted = await json('studios', 'list', '--leads');
  expect(counted.map(({ id, leads }: Record<string, unknown>) => [id, leads])).toEqual([
    ['s2', 31],
    ['s1', 30],
  ]);
  expect(listIds(await list())).toEqual(listIds(newest.slice(0, 25)));
  expect(await list('--limit', '30')).toEqual(newest.slice(0, 30));
  expect(await cli('leads', 'list', 's2', '--limit', '1')).toMatch(new RegExp(`${lead.id}  Ada Lovelace .* new\n`));
  expect(await json('leads', 'get', 's2', lead.id)).toEqual(lead);

  const since = `${lead.createdAt}`;
  const changed = listIds(newest.filter(({ studioId, createdAt }) => studioId === 's2' && `${createdAt}` >= since));
  expect(listIds(await list('--limit', '60', '--stage', 'lost', 'new', '--created-since', since))).toEqual(changed);
  for (const none of [
    ['--stage', 'won'],
    ['--source', lead.id],
    ['--api-key', lead.id],
    ['--changed-since', '2999-01-01'],
  ])
    expect(await list(...none)).toEqual([]);

  await cli('leads', 'stage', 's2', lead.id, 'contacted', '--member', 'seller-1');
  await cli('leads', 'stage', 's2', lead.id, 'new');
  const moves = [{ memberId: 'seller-1', what: { kind: 'stage-move', from: 'new', to: 'contacted' } }, {}];
  expect(await json('leads', 'events', 's2', lead.id)).toMatchObject(moves);
  expect(await cli('leads', 'events', 's2', lead.id)).toMatch(/seller-1.*stage-move/s);

  const counts = await json('leads', 'count', 's2', '--stage', 'new');
  expect(counts).toMatchObject({ byStage: [{ of: 'new', count: 31 }], bySource: [{ of: null, count: 31 }] });
  expect(await cli('leads', 'count', 's2')).toMatch(/trial_booked.*no source.*31/s);

  const exported = async (...args: string[]) => leadsIn(await cli('leads', 'export', ...args)).map(({ id }) => id);
  expect(await exported()).toEqual(listIds(leads));
  expect(await exported('s2', '--changed-since', since)).toEqual(changed.toReversed());
  expect((await cli('leads', 'export', '--byte-order-mark')).slice(0, 3)).toBe('\uFEFFid');
});

// @proves commands-1
test.each([
  [
    ['studios', 'put', 'not an id'],
    ['INVALID_REQUEST', 'studio.id'],
  ],
  [['studios', 'put', 's1', '--test'], ['studio.isTest must stay as it was when the studio was created']],
  [['leads', 'list', 's1', '--source', 'form'], ['filter.sourceIds']],
  [['leads', 'export', 's3'], ['STUDIO_NOT_FOUND']],
  [['leads', 'stage', 's1', 'x', 'sold'], ['Allowed choices are new, contacted']],
  [['leads', 'erase', 's1'], ['no lead given']],
  [['leads', 'erase', '--closed-before', '2099-02-01', '--yes'], ['in the future']],
  [['keys', 'quota', 's1', 'x', 'many'], ['must be a whole number, at least 1']],
  [['keys', 'create', 's1', '--name', 'n'], ["required option '--member"]],
  [['keys', 'ending', '--days', '99999999999'], ['--days names a time that is too far ahead\n']],
  [['restored', '--to', '2999-01-01'], ['--to']],
  [
    ['keys', 'find', '/nowhere/at-all'],
    ['ENOENT', '/nowhere/at-all'],
  ],
  [['consumers', 'create', 'none', '--start', 'now'], ['consumer.studioIds']],
  [['changes', 'resend', '--consumer', 'nobody'], ['CONSUMER_NOT_FOUND']],
])('the command %j fails with its reason on standard error and status 1', async (args, messages) => {
  const { cli } = await withLeads();
  const failure = await cli(...args).catch((error) => error);
  expect(failure).toMatchObject({ code: 1, stdout: '' });
  for (const text of messages) expect(failure.stderr).toContain(text);
});

// @proves feed-7
test('an operator watches changes without acknowledging them, and resends those of a studio', async () => {
  const { store, env, create, json, leads } = await withLeads({});
  const watching = run('operator/cli.ts', { args: ['changes', 'watch'], env });
  await watching.printed(/^1 lead waits, the first since /m);
  const second = aLead({ studioId: 's1' });
  const ids = [leads[0].id, second.id];
  for (const id of ids) {
    if (id === second.id) await create(second);
    await watching.printed(new RegExp(`s1  ${id}  revision 0  new  created`));
  }
  watching.child.kill('SIGINT');
  expect(await watching.ended()).toBe(0);

  const waiting = await changesIn(store);
  expect(waiting.map(({ lead }) => lead.id)).toEqual(ids);
  await acknowledgeIn(store, waiting);
  for (const args of [['s1'], []]) expect(await json('changes', 'resend', ...args)).toEqual({ resent: 2 });
  expect((await changesIn(store)).map(({ lead }) => lead.id).sort()).toEqual(ids.sort());
});

// @proves feed-10 backups-3
test('after a recorded restore, consumers get changes since the backup or the given time', async () => {
  const { store, json, leads } = await withLeads({});
  const relay = await store.createConsumer(aConsumer({ name: 'relay', studioIds: null }), BY);
  if (relay.kind !== 'created') expect.fail(relay.kind);
  const { number } = relay.consumer;
  const acknowledgement = { studioId: 's1', leadId: leads[0].id, revision: 2 ** 51 };
  await acknowledgeIn(store, await changesIn(store));
  await store.acknowledgeDeliveries(number, [acknowledgement]);

  // A later time or none keeps the earlier time, because consumers may not have read the changes that it resent.
  for (const args of [['--to', '2026-05-01T00:00:00Z'], ['--to', '2026-06-01'], []]) {
    const now = Date.now();
    const noted = await json('restored', ...args);
    expect(noted).toEqual({ epoch: expect.any(Number), restoredTo: '2026-04-30T23:55:00.000Z', resent: 1 });
    expect(noted.epoch).toBeGreaterThanOrEqual(now);
    const sent = [...(await changesIn(store)), ...((await store.listDeliveries(number, 9))?.changes ?? [])];
    expect(sent.map((change) => change.lead.id)).toEqual([leads[0].id, leads[0].id]);
    for (const { revision } of sent) expect(revision).toBeGreaterThanOrEqual(now + 86_400_000);
    // An acknowledgement of the state before the restore, stamped by a clock that was an hour ahead.
    const late = { ...acknowledgement, revision: now + 3_600_000 };
    expect(await store.acknowledgeDeliveries(number, [late])).toMatchObject({ applied: 0 });
  }
  const other = await withLeads();
  expect(await other.json('restored')).toMatchObject({ restoredTo: '1970-01-01T00:00:00.000Z', resent: 0 });
});

// @proves feed-7
test('an operator creates, lists and removes consumers of the feed, and resends leads to one', async () => {
  const { store, json, leads } = await withLeads({});
  const [lead] = leads;
  const relay = { name: 'relay', studios: ['s1'] };
  expect(await json('consumers', 'create', 'relay', 's1', '--start', 'now')).toMatchObject({
    ...relay,
    backfilling: false,
  });
  const all = ['--all-studios', '--start', 'all-leads'];
  expect(await json('consumers', 'create', 'copy', ...all)).toMatchObject({ studios: '(all)', backfilling: true });
  const resend = (...args: string[]) => json('changes', 'resend', ...args);
  expect(await resend('--consumer', 'relay')).toEqual({ consumer: 'relay', studios: '(all)' });
  expect(await resend('s1', lead.id, '--consumer', 'relay')).toEqual({ consumer: 'relay', studios: 's1', leads: 1 });
  const changed = lead.updatedAt.toISOString();
  for (const args of [[], ['s1', '--consumer', 'relay']]) {
    expect(await resend(...args, '--changed-since', changed)).toEqual({ resent: 1 });
    expect(await resend(...args, '--changed-before', changed)).toEqual({ resent: 0 });
  }
  await moveLead(store, lead, 'won');
  const waiting = { ...relay, waiting: 1, since: expect.any(String), backfilling: true };
  expect(await json('consumers', 'list')).toMatchObject([waiting, { name: 'copy', waiting: 1 }]);
  const byOperator = ['relay', 's1', lead.id];
  const aside = await json('consumers', 'set-aside', ...byOperator, '--reason', 'BROKEN');
  expect(aside).toEqual({ setAside: 1, unknown: 0 });
  expect(await json('consumers', 'list')).toMatchObject([{ waiting: 0, setAside: 1 }, { name: 'copy' }]);
  const listed = { studioId: 's1', leadId: lead.id, reason: 'BROKEN', attempts: 1, retryAt: null };
  expect(await json('consumers', 'list-set-aside', 'relay')).toMatchObject([listed]);
  expect(await json('consumers', 'take-back', ...byOperator)).toEqual({ takenBack: 1 });
  expect(await json('consumers', 'list-set-aside', 'relay')).toEqual([]);
  for (const removed of [true, false]) expect(await json('consumers', 'remove', 'copy')).toEqual({ removed });
});

// @proves erasure-4
test('an operator erases single leads and old closed leads, and repeats erasures after a restore', async () => {
  const createdAt = new Date('2023-05-04');
  const line = await withLeads(...times(5, () => ({ createdAt })), { createdAt, studioId: 's2' });
  const { path, env, store, cli, json, create, leads } = line;
  await cli('studios', 'put', 's2');
  const [one, old, other, recent, , elsewhere] = leads as [Lead, Lead, Lead, Lead, Lead, Lead];
  await create(elsewhere);
  const close = ({ studioId, id: leadId, contact }: Lead, day: string) => {
    const given = { studioId, leadId, stage: 'won', expectedUpdatedAt: null, memberId: null } as const;
    return store.changeLeadStage({ ...given, keys: { ...keysFor(one), contact }, now: new Date(day) });
  };
  for (const lead of [old, other, elsewhere]) await close(lead, '2024-01-01');
  await close(recent, '2024-06-01');
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.prepare('VACUUM INTO ?').run(`${path}.backup`);
  database.close();

  expect(await json('leads', 'erase', 's1', one.id)).toMatchObject({ id: one.id, stage: 'new' });
  const erase = (...args: string[]) => json('leads', 'erase', ...args, '--closed-before', '2024-02-01');
  expect(await erase()).toEqual({ wouldErase: 3 });
  expect(await erase('s1', '--yes')).toEqual({ erased: 2 });
  expect(await erase('--yes')).toEqual({ erased: 1 });
  expect((await store.listLeads('s1', null, 10)).records.map(({ id }) => id)).toEqual([leads[4]?.id, recent.id]);

  const toFullDisk = await bash('"$CLI" erasures export > /dev/full; echo "status $?"', { ...env, CLI });
  expect(toFullDisk).toMatch(/ENOSPC.*status 1/s);
  const journal = await cli('erasures', 'export');
  const journaled = journal
    .trim()
    .split('\n')
    .map((entry) => JSON.parse(entry).leadId);
  expect(journaled).toEqual([one, old, other, elsewhere].map(({ id }) => id));
  const file = `${path}.journal`;
  writeFileSync(file, journal + JSON.stringify({ studioId: 's1', leadId: newId() }));
  await store.close();
  for (const each of ['', '-wal', '-shm']) rmSync(path + each, { force: true });
  copyFileSync(`${path}.backup`, path);
  const applied = { erased: 4, alreadyErased: 0, notFound: 1, skipped: 0 };
  expect(await json('erasures', 'apply', file)).toEqual(applied);
  writeFileSync(file, `\uFEFF\r\n${journal.replaceAll('\n', '\r\n\r\n')}`);
  expect(await json('erasures', 'apply', file)).toEqual({ ...applied, erased: 0, alreadyErased: 4, notFound: 0 });
  expect(await json('vacuum')).toMatchObject({ before: expect.any(Number) });
});

test('the demo command creates another demo studio once the first has ended, and finds it later', async () => {
  const { end, json } = await withLeads();
  const secret = expect.stringMatching(/^lik_/);
  expect(await json('demo')).toMatchObject({ studioId: 'demo', secret });
  await end('demo');
  expect(await json('demo')).toMatchObject({ studioId: 'demo-2', secret });
  expect(await json('demo')).toMatchObject({ studioId: 'demo-2', secret: null });
});

test('commands read an input longer than the longest string without holding it in memory', async () => {
  const { path, cli, json } = await withLeads();
  const file = `${path}.input`;
  const secret = newKeySecret();
  writeFileSync(file, `${JSON.stringify({ endedStudioId: 's1' })}\n`);
  truncateSync(file, 2 ** 29);
  appendFileSync(file, secret);
  expect(await json('keys', 'find', file)).toMatchObject([{ secretHint: secret.slice(-4) }]);
  const sentences = /^the studio s1 was erased, .+\nline 2 is not an entry of a journal of erasures; .+\n$/;
  await expect(cli('erasures', 'apply', file)).rejects.toMatchObject(refused(sentences));
});

// @proves erasure-4
test('the journal of erasures names ended studios, and applying it reports restored ones', async () => {
  const { path, store, cli, json, create, end } = await withLeads();
  for (const id of ['gone', 'restored']) await cli('studios', 'put', id);
  const [left, back] = ['gone', 'restored'].map((studioId) => aLead({ studioId })) as [Lead, Lead];
  for (const lead of [left, back]) await create(lead);
  await end('gone');
  await store.eraseLead({ studioId: 'gone', leadId: left.id, memberId: null, now: new Date() });
  expect(await store.deleteErasedLeads('gone', [left.id], new Date(Date.now() + DAY_MS))).toBe(1);
  expect(await cli('erasures', 'export')).toBe('{"endedStudioId":"gone"}\n');
  const apply = (...entries: readonly (object | string)[]) => {
    writeFileSync(`${path}.journal`, entries.map((each) => JSON.stringify(each)).join('\n'));
    return json('erasures', 'apply', `${path}.journal`).catch(({ stderr }) => stderr);
  };
  const ends = ['gone', 'restored', 'unknown'].map((endedStudioId) => ({ endedStudioId }));
  const REMINDER = 'the studio restored was erased, and is back: erase it again, with `studios erase`\n';
  expect(await apply(...ends)).toBe(REMINDER);
  // As if the erasure had been interrupted before the backup.
  await end('restored');
  expect(await apply(...ends)).toBe(REMINDER);
  const broken = 'line 2 is not an entry of a journal of erasures; the lines before it were applied\n';
  expect(await apply({ endedStudioId: 'restored' }, {})).toBe(REMINDER + broken);
  // In a backup made between the end and the last erasure, the lines after the end complete it.
  const completed = await apply({ endedStudioId: 'restored' }, { studioId: 'restored', leadId: back.id });
  expect(completed).toEqual({ erased: 1, alreadyErased: 0, notFound: 0, skipped: 0 });
});

// @proves imports-1
test('an import recognises a closed lead by its UUID in any case, even from release 1.2', async () => {
  const { path, json } = await withLeads();
  const file = `${path}.csv`;
  const importing = (column: string, ...ids: readonly string[]) => {
    const lines = ids.map((id, index) => `${id},Ada,a${index}@example.org,lost`);
    writeFileSync(file, [`${column},displayName,email,stage`, ...lines].join('\n'));
    return json('leads', 'import', 's1', file);
  };
  const [older, id] = [newId(), newId()];
  // The key that earlier releases derived from an id in upper case.
  const hash = createHash('sha256')
    .update(`s1\0${JSON.stringify(older.toUpperCase())}`)
    .digest('hex');
  const key = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  expect(await importing('idempotencyKey', key)).toMatchObject({ imported: 1 });
  expect(await importing('id', older, id)).toMatchObject({ imported: 1, alreadyThere: 1, refused: 0 });
  const mixed = `${older.slice(0, 24)}${older.slice(24).toUpperCase()}`;
  for (const spelled of [
    [older.toUpperCase(), id.toUpperCase()],
    [mixed, id],
  ])
    expect(await importing('id', ...spelled)).toMatchObject({ imported: 0, alreadyThere: 2, refused: 0 });
});

test('the keys that end soon are listed for all studios; if there are none, nothing is printed', async () => {
  const { cli, json, end } = await withLeads();
  expect(await cli('keys', 'ending')).toBe('');
  const create = async (studio: string, name: string, days: string) => {
    await cli('studios', 'put', studio);
    await cli('members', 'put', studio, 'boss', '--role', 'owner');
    return json('keys', 'create', studio, '--member', 'boss', '--name', name, '--days', days);
  };
  await create('s1', 'Later', '31');
  await create('s1', 'Month', '29');
  await create('s2', 'Week', '6');
  await cli('keys', 'revoke', 's2', (await create('s2', 'Revoked', '5')).id);
  await create('s3', 'Ended', '5');
  await end('s3');

  const ending = async (...args: string[]) =>
    (await json('keys', 'ending', ...args)).map((key: Record<string, unknown>) => [key.studioId, key.name, key.issuer]);
  const week = ['s2', 'Week', 'boss'];
  expect(await ending()).toEqual([week, ['s1', 'Month', 'boss']]);
  expect(await ending('--days', '7')).toEqual([week]);
  expect(await cli('keys', 'ending', '--days', '3')).toBe('');
  expect(await cli('keys', 'ending', '--days', '7')).toContain('Week');
});

// @proves secrets-4
test('an operator finds the owners of leaked keys and revokes a key without being a member', async () => {
  const { cli, given, json } = await withLeads();
  await cli('members', 'put', 's1', 'boss', '--role', 'owner');
  const create = (name: string) =>
    json('keys', 'create', 's1', '--member', 'boss', '--name', name, '--scope', 'leads.read');
  const [first, second] = [await create('Site'), await create('Shop')];
  const { secret: now } = await json('keys', 'replace', 's1', second.id, '--member', 'boss');
  const unknown = newKeySecret();
  const misspelt = `${first.secret.slice(0, -1)}${first.secret.endsWith('A') ? 'B' : 'A'}`;
  const leaked = `KEY=${first.secret}\n{"old":"${second.secret}"} %20${now} ${misspelt} ${now}, ${unknown} ${first.secret}\n`;

  const find = async (input: string) => JSON.parse(await given(input, '--json', 'keys', 'find'));
  const found = await find(leaked);
  const site = { studioId: 's1', keyId: first.id, name: 'Site', issuer: 'boss', lastUsedAt: null };
  const nothing = expect.stringMatching(/^nothing/);
  expect(found).toMatchObject([
    { ...site, secretHint: first.secretHint, opens: 'leads.read' },
    { secretHint: second.secretHint, opens: nothing },
    { secretHint: now.slice(-4), keyId: second.id, name: 'Shop' },
    { secretHint: unknown.slice(-4), opens: nothing },
  ]);
  for (const secret of [first.secret, second.secret, now, unknown]) expect(JSON.stringify(found)).not.toContain(secret);

  expect((await json('keys', 'list', 's1')).map(({ id }: { id: string }) => id)).toEqual([second.id, first.id]);
  await cli('keys', 'revoke', 's1', first.id);
  const [event] = await json('audit', 's1');
  expect(event).toMatchObject({ action: 'api-key-revoked', apiKeyId: first.id, memberId: null, caller: CALLER });
  expect(await find(first.secret)).toMatchObject([{ opens: nothing, revokedAt: expect.any(String) }]);
  const file = join(temporaryFolder(), 'leak');
  const utf16 = Buffer.from(first.secret, 'utf16le');
  for (const [bytes, reason] of [
    [Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), 'is UTF-16'],
    [Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]), 'is UTF-16'],
    [Buffer.concat([Buffer.from('a log\n'), utf16]), 'has keys in UTF-16'],
    [Buffer.concat([Buffer.from('a log\n'), Buffer.from(utf16).swap16()]), 'has keys in UTF-16'],
    [gzipSync(first.secret), 'is compressed'],
  ] as const) {
    writeFileSync(file, bytes);
    await expect(cli('keys', 'find', file)).rejects.toMatchObject(refused(new RegExp(`^the file ${reason}.*\n$`)));
  }
  // A log that was truncated while a process wrote to it begins with NUL.
  writeFileSync(file, Buffer.concat([Buffer.alloc(100_000), Buffer.from(first.secret)]));
  expect(await json('keys', 'find', file)).toMatchObject([{ secretHint: first.secretHint }]);
});

test('each new token is unique and comes with its entry for the callers file', async () => {
  const make = async () => (await executed(CLI, ['callers', 'token'])).stdout.split('\n');
  const [[token = '', line = ''], [other = '', otherLine = '']] = [await make(), await make()];
  const [entry, otherEntry] = [JSON.parse(line), JSON.parse(otherLine)];
  expect(token).toMatch(/^lic_[\w-]{48}$/);
  expect(other).not.toBe(token);
  expect(entry).toEqual({ sha256: tokenHash(token), created: new Date().toISOString().slice(0, 10) });
  const callers = { website: { may: ['gateway'], tokens: [entry, otherEntry] } };
  expect(parseCallers(JSON.stringify({ callers }))).toEqual(callers);
});

import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MethodOptions_IdempotencyLevel, type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditAction } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { OF_DEPLOYMENT } from '../../src/domain/audit.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  DAY_MS,
  keysFor,
  plus,
  times,
} from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { COMMANDS } from '../support/every-command.ts';
import { startTestCore } from '../support/grpc.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';
import { entry, writeCallersFile } from './a-callers-file.ts';

/** The methods that write: all that the proto does not declare free of side effects. */
const WRITING = ALL_SERVICES.filter(({ file }) => file.proto.package === 'leadintake.v1')
  .flatMap(({ methods }) => methods)
  .filter(({ idempotency }) => idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS)
  .map(({ name }) => name);

/** Methods that leave no event, and why. */
const WITHOUT_EVENT = {
  FindLeads: 'reads: a contact must not be in an address, so it is no GET',
  ExportContact: 'reads, as FindLeads',
  Exchange: 'a visitor creates a lead, which is the record of it',
  RecordRequests: 'what visitors sent, which is a record itself',
  AcknowledgeLeadChanges: 'the progress of a consumer',
  SetAsideLeadChanges: 'the progress of a consumer',
} as const;

type Headers = { readonly headers: { readonly 'x-request-id': string } };
type Call = (crm: CoreClients, options: Headers) => Promise<unknown>;

const [studioId, trial] = ['one', 'trial'];
const [sourceId, memberId] = [randomUUID(), 'owner'];
const contact = { value: { case: 'email', value: 'ada@example.org' } } as const;
const lead = { displayName: 'Ada', contact, idempotencyKey: randomUUID() };
/** The ids created by the calls. */
const made = { leadId: '', imported: '', apiKeyId: '' };
const held = () => ({ studioId, leadId: made.leadId });
const key = () => ({ studioId, memberId, apiKeyId: made.apiKeyId });

/** A call of every method that leaves an event, and its event, ordered so that each call has an effect. */
const CALLS: Readonly<Record<string, readonly [action: string, call: Call]>> = {
  PutStudio: [
    'studio-status-changed',
    async ({ directory }, options) => {
      await directory.putStudio({ studio: { id: trial, status: StudioStatus.ACTIVE, isTest: true } });
      await directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } }, options);
    },
  ],
  PutMember: [
    'studio-member-changed',
    ({ directory }, options) =>
      directory.putMember({ member: { studioId, id: memberId, role: MemberRole.OWNER } }, options),
  ],
  PutLeadSource: [
    'studio-source-changed',
    ({ directory }, options) =>
      directory.putLeadSource({ leadSource: { studioId, id: sourceId, name: 'Form', enabled: true } }, options),
  ],
  RemoveLeadSource: [
    'studio-source-changed',
    ({ directory }, options) => directory.removeLeadSource({ studioId, leadSourceId: sourceId }, options),
  ],
  CreateApiKey: [
    'api-key-created',
    async ({ apiKeys }, options) => {
      const scopes = [ApiKeyScope.LEADS_READ];
      const request = { studioId, memberId, name: 'Site', scopes, expireTime: timestampFromMs(Date.now() + DAY_MS) };
      made.apiKeyId = (await apiKeys.createApiKey(request, options)).apiKey?.id ?? '';
    },
  ],
  PutApiKeyQuota: [
    'api-key-quota-changed',
    ({ directory }, options) => directory.putApiKeyQuota({ ...key(), quotaLimit: 5 }, options),
  ],
  ReplaceApiKey: ['api-key-replaced', ({ apiKeys }, options) => apiKeys.replaceApiKey(key(), options)],
  RevokeApiKey: ['api-key-revoked', ({ apiKeys }, options) => apiKeys.revokeApiKey(key(), options)],
  CreateConsumer: [
    'consumer-changed',
    ({ consumers }, options) =>
      consumers.createConsumer({ consumer: { name: 'relay', allStudios: true }, start: ConsumerStart.NOW }, options),
  ],
  CreateLead: [
    'lead-created',
    async ({ leads }, options) => {
      made.leadId = (await leads.createLead({ studioId, ...lead }, options)).lead?.id ?? '';
    },
  ],
  ImportLeads: [
    'lead-created',
    async ({ leads }, options) => {
      const imported = { ...lead, idempotencyKey: randomUUID(), stage: LeadStage.WON };
      const { results } = await leads.importLeads({ studioId, leads: [imported] }, options);
      made.imported = results[0]?.outcome.case === 'imported' ? results[0].outcome.value.leadId : '';
    },
  ],
  ChangeLeadStage: [
    'lead-stage-changed',
    ({ leads }, options) => leads.changeLeadStage({ ...held(), stage: LeadStage.CONTACTED }, options),
  ],
  UpdateLead: [
    'lead-updated',
    ({ leads }, options) => leads.updateLead({ studioId, lead: { id: made.leadId, displayName: 'Eda' } }, options),
  ],
  ResendLeads: ['leads-resent', ({ leads }, options) => leads.resendLeads({ studioId }, options)],
  TakeBackLeadChanges: [
    'leads-resent',
    ({ consumers }, options) => consumers.takeBackLeadChanges({ consumer: 'relay', all: true }, options),
  ],
  RemoveConsumer: [
    'consumer-changed',
    ({ consumers }, options) => consumers.removeConsumer({ consumer: 'relay' }, options),
  ],
  EraseLead: ['lead-erased', ({ leads }, options) => leads.eraseLead({ studioId, leadId: made.imported }, options)],
  EraseContact: ['lead-erased', ({ leads }, options) => leads.eraseContact({ studioId, contact }, options)],
  RemoveMember: [
    'studio-member-changed',
    ({ directory }, options) => directory.removeMember({ studioId, memberId }, options),
  ],
  EmptyStudio: [
    'studio-emptied',
    async ({ leads, directory }, options) => {
      await leads.createLead({ studioId: trial, ...lead });
      await directory.emptyStudio({ studioId: trial }, options);
    },
  ],
  EraseStudio: [
    'studio-status-changed',
    ({ directory }, options) => directory.eraseStudio({ studioId, confirmStudioId: studioId }, options),
  ],
};

/** Returns the actions of all events, oldest first, with their callers and call ids. */
function eventsIn(path: string) {
  using database = new DatabaseSync(path, { readOnly: true });
  return database.prepare('SELECT action, caller, call_id AS callId FROM audit_events ORDER BY number').all();
}

// @proves audit-2
test('every writing method leaves an event with its caller and call id, or has a reason', async () => {
  expect([...Object.keys(CALLS), ...Object.keys(WITHOUT_EVENT)].toSorted()).toEqual(WRITING.toSorted());
  const token = newCoreToken();
  const core = await startTestCore({
    CORE_CALLERS_FILE: writeCallersFile({ platform: entry(token, ['crm', 'operator']) }).path,
  });
  const crm = connectToCore(core.url, token);
  onTestFinished(async () => {
    crm.close();
    await core.stop();
  });
  for (const [method, [action, call]] of Object.entries(CALLS)) {
    const callId = `call.of_${method}`;
    await call(crm, { headers: { 'x-request-id': callId } });
    const events = eventsIn(core.path).filter((event) => event.callId === callId);
    expect({ method, events }).toMatchObject({ method, events: [{ action, caller: 'platform' }] });
  }
  // An invalid request id counts as none.
  await crm.directory.putStudio(
    { studio: { id: 'x', status: StudioStatus.ACTIVE } },
    { headers: { 'x-request-id': 'a b' } },
  );
  expect(eventsIn(core.path).at(-1)).toMatchObject({ caller: 'platform', callId: null });
});

/** Commands that are not tried here, and why. */
const OTHER_COMMANDS = {
  reads:
    'studios get, studios list, studios try-retention, sources list, keys list, keys ending, keys find, leads list, leads count, leads events, leads get, leads export, leads export-contact, leads find, erasures export, changes watch, consumers list, consumers list-set-aside, audit show, audit export, requests, doctor',
  'takes its time: test/e2e/cli.test.ts reads its event': 'studios erase',
  'writes no record of the database': 'callers token, vacuum, backup, verify',
} as const;

/** Runs commands in one process, and writes the number of events after each of them. */
const RUNNER = `
  import { appendFileSync } from 'node:fs';
  import { DatabaseSync } from 'node:sqlite';
  import { addEveryCommand } from '${ROOT}/operator/commands/every-command.ts';
  import { program } from '${ROOT}/operator/commands/program.ts';
  addEveryCommand();
  for (const args of JSON.parse(process.env.COMMANDS)) {
    await program.parseAsync(args, { from: 'user' });
    using database = new DatabaseSync(process.env.DATABASE_URL.slice('sqlite:'.length));
    const { count } = database.prepare('SELECT count(*) AS count FROM audit_events').get();
    appendFileSync(process.env.COUNTS, String(count) + ' ');
  }`;

// @proves audit-2
test('every writing command leaves an event with user, machine and run id, or has a reason', async () => {
  const folder = temporaryFolder();
  const [path, journal, csv] = ['leads.db', 'journal', 'leads.csv'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const [key, source] = [anApiKey({ studioId }), aLeadSource({ studioId })];
  const leads = ['stage', 'erased', 'in a journal', 'of a contact'].map(() => aLead({ studioId }));
  const [moved, erased, listed] = leads.map(({ id }) => id) as [string, string, string];
  const store = await openSqliteStore(path);
  await store.putStudio(aStudio({ id: studioId }), BY);
  await store.putStudio(aStudio({ id: trial, isTest: true }), BY);
  await store.putMember(aMember({ studioId, id: memberId, role: 'owner' }), BY);
  for (const each of [...leads, aLead({ studioId: trial })]) await store.createLead(each, keysFor(each));
  await store.createApiKey(key, BY.now);
  await store.putLeadSource(source, BY);
  await store.createConsumer(aConsumer(), BY);
  await store.close();
  writeFileSync(journal, JSON.stringify({ studioId, leadId: listed, eraseTime: '2026-01-01T00:00:00Z' }));
  writeFileSync(csv, 'displayName,email\nAda,new@example.org\n');

  const commands: Readonly<Record<string, readonly string[]>> = {
    'studios put': [studioId, '--quota', '7'],
    'members put': [studioId, 'seller', '--role', 'staff'],
    'members remove': [studioId, 'seller'],
    'sources put': [studioId, '--name', 'Fair'],
    'sources remove': [studioId, source.id],
    'keys create': [studioId, '--member', memberId, '--name', 'Site'],
    'keys replace': [studioId, key.id, '--member', memberId, '--days', '30'],
    'keys quota': [studioId, key.id, '9'],
    'keys revoke': [studioId, key.id],
    'leads import': [studioId, csv],
    'leads stage': [studioId, moved, 'contacted'],
    'consumers set-aside': ['relay', studioId, moved, '--reason', 'ANY'],
    'consumers take-back': ['relay'],
    'changes resend': [studioId],
    'leads erase': [studioId, erased],
    'leads erase-contact': [studioId],
    'erasures apply': [journal],
    'consumers create': ['copy', '--all-studios', '--start', 'now'],
    'consumers remove': ['copy'],
    restored: [],
    'studios empty': [trial],
    demo: [],
  };
  const others = Object.values(OTHER_COMMANDS).flatMap((names) => names.split(', '));
  expect([...Object.keys(commands), ...others].toSorted()).toEqual(COMMANDS.map(([name]) => name).toSorted());
  const before = eventsIn(path).length;
  const counts = join(folder, 'counts');
  const env = {
    DATABASE_URL: `sqlite:${path}`,
    COUNTS: counts,
    COMMANDS: JSON.stringify(Object.entries(commands).map(([name, args]) => [...name.split(' '), ...args])),
  };
  await executed(process.execPath, ['--input-type=module', '-e', RUNNER], {
    env,
    input: JSON.stringify(leads[3]?.contact),
  });

  const totals = readFileSync(counts, 'utf8').trim().split(' ').map(Number);
  const silent = Object.keys(commands).filter((_, index) => totals[index] === (totals[index - 1] ?? before));
  expect(silent).toEqual([]);
  const events = eventsIn(path).slice(before);
  const host = hostname().slice(0, 64);
  expect(new Set(events.map(({ caller }) => caller))).toEqual(
    new Set([`(command line, ${userInfo().username} on ${host})`]),
  );
  expect(new Set(events.map(({ callId }) => callId)).size).toBe(1);
  expect(events[0]?.callId).toMatch(/^[0-9a-f-]{36}$/);
});

/** Starts a core whose database has hour-old events of two studios and of none. */
async function aCoreWithEvents() {
  const past = (ms: number) => ({ ...BY, now: plus(HOUR_AGO, ms) });
  const core = await startTestCore({
    CORE_CALLERS_FILE: writeCallersFile({
      auditor: entry(AUDITOR, ['read']),
      branch: entry(BRANCH, ['read'], [studioId]),
    }).path,
  });
  const store = openSqliteStore(core.path);
  for (const id of [studioId, trial]) await store.putStudio(aStudio({ id }), past(0));
  // More than a part of an export holds.
  const acts = times(1500, (ms) => store.recordAct(studioId, { action: 'leads-resent', to: `relay-${ms}` }, past(ms)));
  await Promise.all(acts);
  await store.recordAct(OF_DEPLOYMENT, { action: 'leads-resent' }, past(2000));
  await store.recordAct(OF_DEPLOYMENT, { action: 'leads-resent' }, { ...BY, now: new Date() });
  await store.close();
  const clients = [AUDITOR, BRANCH].map((token) => connectToCore(core.url, token)) as [CoreClients, CoreClients];
  onTestFinished(async () => {
    for (const each of clients) each.close();
    await core.stop();
  });
  return { path: core.path, auditor: clients[0], branch: clients[1] };
}

const HOUR_AGO = new Date(Date.now() - 3_600_000);
const [AUDITOR, BRANCH] = [newCoreToken(), newCoreToken()];
const wireTime = (date: Date) => timestampFromMs(date.getTime());

// @proves audit-4
describe('an export of the audit log', () => {
  test('an audit export has each event once, resumes anywhere, and ends five minutes ago', async () => {
    const { auditor } = await aCoreWithEvents();
    const all = await Array.fromAsync(auditor.audit.exportAuditEvents({}));
    const listEvents = (parts: typeof all) => parts.flatMap(({ events }) => events);
    expect(listEvents(all)).toHaveLength(2 + 1500 + 1);
    expect(listEvents(all).at(-1)).toMatchObject({ studioId: '', action: AuditAction.LEADS_RESENT });
    const endTime = all[0]?.endTime as Timestamp;
    expect(Math.abs(Date.now() - 300_000 - timestampMs(endTime))).toBeLessThan(60_000);
    expect(all.map(({ resumeToken }) => resumeToken === '')).toEqual([false, true]);
    const { resumeToken = '' } = all[0] ?? {};
    const rest = await Array.fromAsync(auditor.audit.exportAuditEvents({ resumeToken }));
    expect(listEvents(rest)).toEqual(listEvents(all.slice(1)));
    expect(rest[0]?.endTime).toEqual(endTime);
    const [startTime, end] = [wireTime(plus(HOUR_AGO, 10)), wireTime(plus(HOUR_AGO, 20))];
    const some = await Array.fromAsync(auditor.audit.exportAuditEvents({ startTime, endTime: end }));
    expect(listEvents(some).map(({ to }) => to)).toEqual(times(10, (index) => `relay-${index + 10}`));
  });

  test('an audit export is refused for invalid requests, and to a caller of some studios', async () => {
    const { auditor, branch } = await aCoreWithEvents();
    const refusal = (request: object, client = auditor) =>
      Array.fromAsync(client.audit.exportAuditEvents(request)).then(
        () => expect.fail('it is not refused'),
        (error) => Code[ConnectError.from(error).code],
      );
    const startTime = wireTime(HOUR_AGO);
    const [{ resumeToken = '' } = {}] = await Array.fromAsync(auditor.audit.exportAuditEvents({ startTime }));
    for (const request of [
      { resumeToken: 'forged' },
      { resumeToken, startTime },
      { endTime: wireTime(new Date()) },
      { startTime, endTime: wireTime(plus(HOUR_AGO, -1)) },
    ])
      expect([request, await refusal(request)]).toEqual([request, 'InvalidArgument']);
    for (const request of [{}, { startTime }, { resumeToken }])
      expect(await refusal(request, branch)).toBe('PermissionDenied');
  });

  test('audit export prints a line for each event, and resumes after the last with a token', async () => {
    const { path } = await aCoreWithEvents();
    const env = { DATABASE_URL: `sqlite:${path}` };
    const exported = async (...args: string[]) => {
      const { stdout, stderr } = await executed(CLI, ['audit', 'export', ...args], { env });
      return {
        lines: stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
        stderr,
      };
    };
    const { lines, stderr } = await exported();
    expect(lines).toHaveLength(2 + 1500 + 1);
    expect(Object.keys(lines[0])[0]).toBe('time');
    expect(stderr).toMatch(/^all events before \S+Z: the next export begins there \(--since\)\n$/);
    const at = lines.findIndex(({ resumeToken }) => resumeToken !== undefined);
    expect((await exported('--resume-token', lines[at].resumeToken)).lines).toEqual(lines.slice(at + 1));
    const withTimes = exported('--resume-token', lines[at].resumeToken, '--until', '2026-02-01');
    await expect(withTimes).rejects.toThrow(/'--resume-token <token>' cannot be used with option '--until/);
    const range = ['--since', plus(HOUR_AGO, 10).toISOString(), '--until', plus(HOUR_AGO, 20).toISOString()];
    expect((await exported(...range)).lines).toHaveLength(10);
  });
});

import { randomUUID } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { AuditAction } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { RefusalReason } from '../../proto/gen/leadintake/v1/refusal_pb.ts';
import type { CallerRole } from '../../src/domain/caller.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';
import { aFileOf, entry } from './a-callers-file.ts';

const studioId = 'one';
const wholeStudio = true;
const reason = 'LEGAL_CASE_7';
const HELD = 'LEAD_HELD' satisfies keyof typeof RefusalReason;

let core: TestCore;
let crm: CoreClients;
let callers: ReturnType<typeof aFileOf>;

beforeEach(async () => {
  callers = aFileOf({});
  core = await startTestCore({ CORE_CALLERS_FILE: callers.path });
  crm = connectToCore(core.url, CORE_TOKEN);
  for (const id of [studioId, 'two']) await crm.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE } });
  return async () => {
    crm.close();
    await core.stop();
  };
});

const contact = { value: { case: 'email', value: 'ada@example.org' } } as const;

async function created(of: string = studioId, email = `${randomUUID()}@example.org`): Promise<string> {
  const its = { value: { case: 'email', value: email } } as const;
  const request = { studioId: of, idempotencyKey: randomUUID(), displayName: 'Ada', contact: its };
  return (await crm.leads.createLead(request)).lead?.id ?? '';
}

const put = (what: object, by = crm) => by.directory.putHold({ studioId, reason, ...what });
const remove = (what: object, by = crm) => by.directory.removeHold({ studioId, ...what });
const erase = (leadId: string, of: string = studioId) => crm.leads.eraseLead({ studioId: of, leadId });
const read = async (leadId: string, view: LeadView = LeadView.FULL) =>
  (await crm.leads.getLead({ studioId, leadId, view })).lead;

const refusalOf = (call: Promise<unknown>) => call.then(() => expect.fail('it is not refused'), ConnectError.from);
const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).findDetails(ErrorInfoSchema)[0]?.reason;
const faultsOf = async (call: Promise<unknown>) =>
  (await refusalOf(call))
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));

// @proves erasure-5
describe('a hold', () => {
  test('of a lead forbids to erase it, is shown with all of the lead, and changes nothing of it', async () => {
    const leadId = await created();
    const before = await read(leadId);
    const { hold } = await put({ leadId: leadId.toUpperCase(), memberId: 'lawyer' });
    expect(hold).toMatchObject({ reason, createTime: expect.anything() });
    expect(await put({ leadId })).toMatchObject({ hold });
    expect(await read(leadId)).toEqual({ ...before, hold });
    expect(await read(leadId, LeadView.BASIC)).not.toHaveProperty('hold');
    const exported = await Array.fromAsync(crm.leads.exportLeads({ studioId }));
    expect(exported.flatMap(({ leads }) => leads)).toMatchObject([{ id: leadId, hold }]);
    const { changes } = await crm.leads.pullLeadChanges({});
    expect(changes.map(({ lead, revision }) => [lead?.hold, revision])).toEqual([[undefined, 0n]]);

    expect(await reasonOf(erase(leadId))).toBe(HELD);
    expect(await read(leadId)).toEqual({ ...before, hold });
    expect(await remove({ leadId })).toMatchObject({ hold });
    expect(await remove({ leadId })).not.toHaveProperty('hold');
    await erase(leadId);
    const { events } = await crm.audit.listAuditEvents({ studioId, leadId });
    const { LEAD_CREATED, LEAD_ERASED, LEAD_HOLD_CHANGED } = AuditAction;
    expect(events.map(({ action, from, to, memberId }) => [action, from, to, memberId])).toEqual([
      [LEAD_ERASED, undefined, undefined, undefined],
      [LEAD_HOLD_CHANGED, reason, undefined, undefined],
      [LEAD_HOLD_CHANGED, undefined, reason, 'lawyer'],
      [LEAD_CREATED, undefined, 'new', undefined],
    ]);
    for (const call of [put, remove]) expect(await reasonOf(call({ leadId }))).toBe('LEAD_NOT_FOUND');
  });

  test('of a studio forbids to erase any of its leads, and none of another', async () => {
    const [leadId, theirs] = [await created(), await created('two')];
    const { hold } = await put({ wholeStudio });
    expect((await crm.directory.getStudio({ studioId })).studio).toMatchObject({ hold });
    expect(await read(leadId)).not.toHaveProperty('hold');
    const later = await created();
    for (const id of [leadId, later]) expect(await reasonOf(erase(id))).toBe(HELD);
    expect(await reasonOf(crm.leads.eraseContact({ studioId, contact }))).toBe(HELD);
    await erase(theirs, 'two');
    const studio = { id: studioId, status: StudioStatus.ACTIVE, hold: { reason: 'OTHER' } };
    expect((await crm.directory.putStudio({ studio })).studio).toMatchObject({ hold });
    expect(await remove({ wholeStudio })).toMatchObject({ hold });
    await erase(later);
    const { events } = await crm.audit.listAuditEvents({ studioId });
    expect(events.filter(({ action }) => action === AuditAction.STUDIO_HOLD_CHANGED)).toHaveLength(2);
  });

  test('leaves leads out of an erasure of their contact, which says so and does not claim to be complete', async () => {
    const [held, former] = [await created(studioId, 'ada@example.org'), await created()];
    await crm.leads.changeLeadStage({ studioId, leadId: held, stage: LeadStage.WON });
    const other = await created(studioId, 'ADA@example.org');
    await put({ leadId: held });
    const answer = await crm.leads.eraseContact({ studioId, contact });
    expect(answer).toMatchObject({ erasedCount: 1, heldCount: 1, skippedCount: 0, mayBeIncomplete: true });
    expect(await reasonOf(crm.leads.getLead({ studioId, leadId: other }))).toBe('LEAD_NOT_FOUND');
    expect(await crm.leads.eraseContact({ studioId, contact })).toMatchObject({ erasedCount: 0, heldCount: 1 });
    const exported = await Array.fromAsync(crm.leads.exportContact({ studioId, contact }));
    expect(exported[0]?.lead).toMatchObject({ id: held, hold: { reason } });
    await remove({ leadId: held });
    expect(await crm.leads.eraseContact({ studioId, contact })).toMatchObject({
      erasedCount: 1,
      heldCount: 0,
      mayBeIncomplete: false,
    });
    expect(await read(former)).toBeDefined();
  });

  test('of a test studio, or of one of its leads, forbids to empty it', async () => {
    const id = 'trial';
    await crm.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE, isTest: true } });
    const leadId = await created(id);
    for (const what of [{ wholeStudio }, { leadId }]) {
      await put({ studioId: id, ...what });
      expect(await reasonOf(crm.directory.emptyStudio({ studioId: id }))).toBe(HELD);
      await remove({ studioId: id, ...what });
    }
    expect(await crm.directory.emptyStudio({ studioId: id })).toMatchObject({ deletedLeadCount: 1, isEmpty: true });
  });

  test('is refused for what is wrong, unknown, or of another studio', async () => {
    const [leadId, theirs] = [await created(), await created('two')];
    const cases: [object, string[]][] = [
      [{}, ['leadId']],
      [{ leadId, wholeStudio }, ['leadId']],
      [{ leadId: '' }, ['leadId']],
      [{ leadId: 'x'.repeat(5000) }, ['leadId']],
      [{ leadId, studioId: 'a b' }, ['studioId']],
      [{ leadId, studioId: '' }, ['studioId']],
      [{ leadId, memberId: '' }, ['memberId']],
      [{ leadId, requestId: '1' }, ['requestId']],
    ];
    for (const [what, fields] of cases) {
      expect(await faultsOf(put(what))).toEqual(fields);
      expect(await faultsOf(remove(what))).toEqual(fields);
    }
    for (const wrong of ['', 'lower', '7', 'A B', `A${'B'.repeat(63)}`, 'A\n', 'Ä', 'x'.repeat(5000), 'UNREADABLE'])
      expect(await faultsOf(put({ leadId, reason: wrong }))).toEqual(['reason']);
    for (const call of [put, remove]) {
      expect(await reasonOf(call({ leadId: theirs }))).toBe('LEAD_NOT_FOUND');
      expect(await reasonOf(call({ leadId: randomUUID() }))).toBe('LEAD_NOT_FOUND');
      expect(await reasonOf(call({ studioId: 'none', wholeStudio }))).toBe('STUDIO_NOT_FOUND');
    }
    const longest = `A${'9'.repeat(62)}`;
    expect((await put({ leadId, reason: longest })).hold).toMatchObject({ reason: longest });
    expect((await crm.audit.listAuditEvents({ studioId, leadId })).events[0]).toMatchObject({ to: longest });
  });

  test.each<[CallerRole, boolean]>([
    ['crm', true],
    ['operator', true],
    ['read', false],
    ['feed', false],
    ['gateway', false],
  ])('may be put and removed by the role %s: %s, within its studios', async (role, isAllowed) => {
    const token = newCoreToken();
    const consumers = role === 'feed' ? ['relay'] : undefined;
    callers.put({ it: { ...entry(token, [role]), studios: [studioId], ...(consumers && { consumers }) } });
    const client = connectToCore(core.url, token);
    onTestFinished(() => client.close());
    const leadId = await created();
    const codeOf = (call: Promise<unknown>) =>
      call.then(
        () => undefined,
        (error) => ConnectError.from(error).code,
      );
    await expect.poll(() => codeOf(put({ leadId }, client))).toBe(isAllowed ? undefined : Code.PermissionDenied);
    for (const what of [{ leadId }, { wholeStudio }])
      for (const call of [put, remove])
        expect(await codeOf(call(what, client))).toBe(isAllowed ? undefined : Code.PermissionDenied);
    expect(await codeOf(put({ studioId: 'two', wholeStudio }, client))).toBe(Code.PermissionDenied);
  });
});

import { randomUUID } from 'node:crypto';
import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { AuditAction } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import { LeadChangeKind, LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { anEmail, aService, expectProblem, leadOf } from '../../support/service.ts';

const service = aService();

// @proves erasure-1
test('an erased lead is not found, its contact is free, and a late repetition does not recreate it', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const capture = { displayName: 'Ada Lovelace', contact: anEmail(`${randomUUID()}@example.org`), note: 'Calls back.' };
  const key = { 'idempotency-key': randomUUID() };
  const { id } = await leadOf(await service.post(secret, capture, key), 201);

  const { lead } = await service.leads.eraseLead({ studioId, leadId: id.toUpperCase(), memberId: 'the-boss' });
  expect(lead).toMatchObject({ id, studioId, displayName: '', stage: LeadStage.NEW, eraseTime: lead?.updateTime });
  expect(lead?.contact).toBeUndefined();

  await expectProblem(await service.get(secret, `/${id}`), 404, 'integration_lead_not_found');
  const { detail } = await expectProblem(
    await service.post(secret, capture, key),
    409,
    'integration_idempotency_conflict',
  );
  expect(detail).toBe('The lead that was created with this Idempotency-Key was erased since. Nothing was written.');
  expect(await service.countLeads(studioId)).toBe(0);
  await leadOf(await service.post(secret, capture), 201);

  expect(await service.leads.eraseLead({ studioId, leadId: id })).toMatchObject({ lead });
  const { events } = await service.audit.listAuditEvents({ studioId, leadId: id });
  expect(events).toMatchObject([{ action: AuditAction.LEAD_ERASED, memberId: 'the-boss' }]);
  const { changes } = await service.leads.pullLeadChanges({ max: 100 });
  const erased = changes.find((change) => change.lead?.id === id);
  expect(erased?.lead).toEqual(lead);
  expect(erased?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED, LeadChangeKind.ERASED]);
});

test('all leads of a contact are erased, in any spelling and stage, and no others', async () => {
  const { studioId, secret } = await service.aStudioWithKey({ regionCode: 'DE' });
  const phone = (value: string) => ({ displayName: 'Ada', contact: { type: 'phone', value } });
  const { id: closed } = await leadOf(await service.post(secret, phone('030 1234567')), 201);
  await service.leads.changeLeadStage({ studioId, leadId: closed, stage: LeadStage.WON });
  await leadOf(await service.post(secret, phone('+49 30 1234567')), 201);
  const { id: other } = await leadOf(await service.post(secret, phone('030 7654321')), 201);

  const elsewhere = { studioId: (await service.aStudioWithKey()).studioId, leadId: other };
  await expect(service.leads.eraseLead(elsewhere)).rejects.toMatchObject({ code: Code.NotFound });

  const contact = { value: { case: 'phone', value: '(030) 123 45 67' } } as const;
  const erased = await service.leads.eraseContact({ studioId, contact, memberId: 'the-boss' });

  expect(erased).toMatchObject({ erasedCount: 2, mayBeIncomplete: false });
  expect(await service.leads.eraseContact({ studioId, contact })).toMatchObject({ erasedCount: 0 });
  expect((await service.leads.findLeads({ studioId, contact })).leads).toEqual([]);
  expect((await service.leads.listLeads({ studioId })).leads.map(({ id }) => id)).toEqual([other]);
  const { events } = await service.audit.listAuditEvents({ studioId, leadId: closed });
  expect(events[0]).toMatchObject({ action: AuditAction.LEAD_ERASED, memberId: 'the-boss' });
});

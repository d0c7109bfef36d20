import { randomUUID } from 'node:crypto';
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

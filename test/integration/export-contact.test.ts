import { randomUUID } from 'node:crypto';
import { Code } from '@connectrpc/connect';
import { beforeEach, describe, expect, test } from 'vitest';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';

const studioId = 'one';

let core: TestCore;
let crm: CoreClients;

beforeEach(async () => {
  core = await startTestCore();
  crm = connectToCore(core.url, CORE_TOKEN);
  for (const id of [studioId, 'two'])
    await crm.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE, regionCode: 'DE' } });
  return async () => {
    crm.close();
    await core.stop();
  };
});

const email = (value: string) => ({ value: { case: 'email', value } }) as const;
const phone = (value: string) => ({ value: { case: 'phone', value } }) as const;

async function created(contact: object, more: { studioId?: string; note?: string; displayName?: string } = {}) {
  const idempotencyKey = randomUUID();
  const { lead } = await crm.leads.createLead({ studioId, displayName: 'Ada', idempotencyKey, contact, ...more });
  return { leadId: lead?.id ?? '', idempotencyKey };
}

const close = (leadId: string) => crm.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.LOST });

const exported = (contact: object, of = studioId) =>
  Array.fromAsync(crm.leads.exportContact({ studioId: of, contact }));

// @proves studios-3
describe('ExportContact', () => {
  test('ExportContact sends every lead of a person with all its data, and whether that is all', async () => {
    const first = await created(email('ada@example.org'), { note: 'first' });
    await crm.leads.updateLead({ studioId, lead: { id: first.leadId, displayName: 'Ada King', note: 'corrected' } });
    await close(first.leadId);
    const second = await created(email('ADA@example.org'));
    const again = created(email('ada@EXAMPLE.org'), { note: 'still free?' });
    await expect(again).rejects.toMatchObject({ code: Code.AlreadyExists });
    const former = await created(email('typo@example.org'));
    await crm.leads.updateLead({ studioId, lead: { id: former.leadId, contact: phone('+49 30 1234567') } });
    await created(email('ada@example.org'), { studioId: 'two' });
    await created(email('other@example.org'));

    expect(await exported(email('Ada@Example.org'))).toMatchObject([
      {
        lead: { id: first.leadId, displayName: 'Ada King', note: 'corrected', stage: LeadStage.LOST },
        idempotencyKey: first.idempotencyKey,
        createdWith: { displayName: 'Ada', note: 'first' },
      },
      {
        lead: {
          id: second.leadId,
          contact: email('ADA@example.org'),
          enquiries: [{ note: 'still free?', contact: email('ada@EXAMPLE.org') }],
        },
        idempotencyKey: second.idempotencyKey,
      },
      { mayBeIncomplete: false, skippedCount: 0 },
    ]);
    expect((await exported(email('typo@example.org')))[0]).toMatchObject({
      lead: { id: former.leadId, contact: phone('+49 30 1234567') },
    });
    expect((await exported(phone('030 1234567')))[0]).toMatchObject({ lead: { id: former.leadId } });

    await crm.leads.eraseContact({ studioId, contact: email('ada@example.org') });
    expect(await exported(email('ada@example.org'))).toMatchObject([{ mayBeIncomplete: false }]);
    await expect(exported(email('ada@example.org'), 'none')).rejects.toMatchObject({ code: Code.NotFound });
    // Erased by a contact from before a correction.
    await crm.leads.eraseContact({ studioId, contact: email('typo@example.org') });
    expect(await exported(phone('030 1234567'))).toMatchObject([{ mayBeIncomplete: false }]);
  });

  test('ExportContact sends more leads than a page holds, each once', async () => {
    const ids: string[] = [];
    for (const _ of times(101, () => 0)) {
      const { leadId } = await created(email('ada@example.org'));
      await close(leadId);
      ids.push(leadId);
    }
    const messages = await exported(email('ada@example.org'));
    expect(messages.slice(0, -1).map(({ lead }) => lead?.id)).toEqual(ids.toSorted());
    expect(messages.at(-1)?.lead).toBeUndefined();
  });
});

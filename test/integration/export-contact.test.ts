import { randomUUID } from 'node:crypto';
import { Code } from '@connectrpc/connect';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CallerRole } from '../../src/domain/caller.ts';
import { times } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';
import { aFileOf, entry } from './a-callers-file.ts';

const studioId = 'one';

let core: TestCore;
let crm: CoreClients;
let callers: ReturnType<typeof aFileOf>;

beforeEach(async () => {
  callers = aFileOf({});
  core = await startTestCore({ CORE_CALLERS_FILE: callers.path });
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

const exported = (contact: object, { leads } = crm, of = studioId) =>
  Array.fromAsync(leads.exportContact({ studioId: of, contact }));

// @proves studios-3
describe('ExportContact', () => {
  test('sends every lead of a person with all that is kept of it, and at the end whether that is all', async () => {
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
  });

  test('sends more leads than a list has on a page, each once', async () => {
    const ids: string[] = [];
    for (const _ of times(120, () => 0)) {
      const { leadId } = await created(email('ada@example.org'));
      await close(leadId);
      ids.push(leadId);
    }
    const messages = await exported(email('ada@example.org'));
    expect(messages.slice(0, -1).map(({ lead }) => lead?.id)).toEqual(ids.toSorted());
    expect(messages.at(-1)?.lead).toBeUndefined();
  });

  test('is refused without a contact, for a wrong one, and for a studio that does not exist', async () => {
    const refused = (contact: object, of?: string) =>
      exported(contact, crm, of).then(
        () => 'not refused',
        ({ code }) => code,
      );
    for (const contact of [{}, email('no address'), email(`${'a'.repeat(260)}@b`), phone('12')])
      expect(await refused(contact)).toBe(Code.InvalidArgument);
    expect(await refused(email('ada@example.org'), 'a b')).toBe(Code.InvalidArgument);
    expect(await refused(email('ada@example.org'), 'none')).toBe(Code.NotFound);
  });

  test('is for the CRM of the studio, and for nobody else', async () => {
    await created(email('ada@example.org'), { studioId: 'two' });
    const codeAs = async (may: readonly CallerRole[], studios?: string[]) => {
      const token = newCoreToken();
      callers.put({ it: { ...entry(token, may), ...(studios && { studios }) } });
      const client = connectToCore(core.url, token);
      onTestFinished(() => client.close());
      const codeOf = ({ code }: { readonly code: Code }) => code;
      const known = () => client.directory.getStudio({ studioId: 'two' }).then(() => undefined, codeOf);
      await expect.poll(known).toBeOneOf([undefined, Code.PermissionDenied]);
      return exported(email('ada@example.org'), client, 'two').then(({ length }) => length, codeOf);
    };
    expect(await codeAs(['crm'])).toBe(2);
    expect(await codeAs(['crm'], ['one'])).toBe(Code.PermissionDenied);
    expect(await codeAs(['read', 'operator', 'gateway'])).toBe(Code.PermissionDenied);
  });
});

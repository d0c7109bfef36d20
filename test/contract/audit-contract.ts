import { beforeEach, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../src/domain/audit.ts';
import type { LeadStage } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aLead,
  anApiKey,
  aSecretHash,
  aStudio,
  BY,
  claimsOf,
  DAY_MS,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, OPEN_STAGES } from './store-actions.ts';

/** The promises about audit events. */
export function auditContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved } = actionsOn(() => store);

  describe('audit events', () => {
    const event = {
      studioId: STUDIO_ID,
      caller: null,
      apiKeyId: null,
      leadId: null,
      from: null,
      to: null,
      time: NOW,
    };

    test('record changes of a studio and its keys, newest first, with actor and time, and survive a restart', async () => {
      const at = (ms: number, memberId: string | null) => ({ memberId, now: plus(NOW, ms) });
      await store.putStudio(aStudio(), at(0, null));
      await store.putStudio(aStudio({ regionCode: 'DE' }), at(1, 'nobody'));
      const key = anApiKey();
      await store.createApiKey(key, plus(NOW, 2));
      const other = { studioId: STUDIO_ID, keyId: key.id, memberId: 'member-2' };
      const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
      await store.replaceApiKey({ ...other, ...secret, now: plus(NOW, 3) });
      await store.putStudio(aStudio({ status: 'suspended' }), at(4, 'member-3'));
      await store.putStudio(aStudio({ status: 'suspended' }), at(5, 'nobody'));
      await store.revokeApiKey(STUDIO_ID, key.id, at(6, 'member-4'));
      await store.revokeApiKey(STUDIO_ID, key.id, at(7, 'nobody'));
      await store.putStudio(aStudio(), at(8, null));
      const apiKeyId = key.id;

      store = await opened().reopen();
      expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
        [
          { ...event, action: 'studio-status-changed', memberId: null, to: 'active' },
          { ...event, action: 'api-key-created', memberId: 'member-1', apiKeyId, time: plus(NOW, 2) },
          { ...event, action: 'api-key-replaced', memberId: 'member-2', apiKeyId, time: plus(NOW, 3) },
          {
            ...event,
            action: 'studio-status-changed',
            memberId: 'member-3',
            time: plus(NOW, 4),
            from: 'active',
            to: 'suspended',
          },
          { ...event, action: 'api-key-revoked', memberId: 'member-4', apiKeyId, time: plus(NOW, 6) },
          {
            ...event,
            action: 'studio-status-changed',
            memberId: null,
            time: plus(NOW, 8),
            from: 'suspended',
            to: 'active',
          },
        ].toReversed(),
      );
      expect(await store.listAuditEvents('studio-2', null)).toEqual([]);
    });

    test('record changes of quotas with the old and the new limit, in the same write as other changes', async () => {
      const at = (ms: number, caller?: string) => ({ memberId: 'member-1', caller, now: plus(NOW, ms) });
      const put = { id: STUDIO_ID, status: undefined, regionCode: undefined };
      await store.putStudio(aStudio({ quotaLimit: 100 }), at(0));
      const key = anApiKey();
      await store.createApiKey(key, plus(NOW, 1));
      await store.putStudio({ ...put, status: 'suspended', quotaLimit: 2_000 }, at(2, 'crm'));
      await store.putStudio({ ...put, quotaLimit: 2_000 }, at(3));
      await store.putStudio({ ...put, status: 'suspended' }, at(4));
      await store.putStudio({ ...put, quotaLimit: null }, at(5));
      await store.putApiKeyQuota(STUDIO_ID, key.id, 7, at(6, 'crm'));
      await store.putApiKeyQuota(STUDIO_ID, key.id, 7, at(7));
      await store.putApiKeyQuota(STUDIO_ID, key.id, null, at(8));

      const byMember = { ...event, memberId: 'member-1' };
      const ofStudio = { ...byMember, action: 'studio-quota-changed' };
      const ofKey = { ...byMember, action: 'api-key-quota-changed', apiKeyId: key.id };
      store = await opened().reopen();
      expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
        [
          { ...byMember, action: 'studio-status-changed', to: 'active' },
          { ...ofStudio, to: '100' },
          { ...byMember, action: 'api-key-created', apiKeyId: key.id, time: plus(NOW, 1) },
          {
            ...byMember,
            action: 'studio-status-changed',
            caller: 'crm',
            time: plus(NOW, 2),
            from: 'active',
            to: 'suspended',
          },
          { ...ofStudio, caller: 'crm', time: plus(NOW, 2), from: '100', to: '2000' },
          { ...ofStudio, time: plus(NOW, 5), from: '2000' },
          { ...ofKey, caller: 'crm', time: plus(NOW, 6), to: '7' },
          { ...ofKey, time: plus(NOW, 8), from: '7' },
        ].toReversed(),
      );
    });

    test('record changes of a lead, without effect on how the lead is read', async () => {
      const lead = await created();
      const { id: leadId, studioId } = lead;
      const move = { studioId, leadId, claims: claimsOf(lead) };
      await store.changeLeadStage({ ...move, stage: 'contacted', memberId: 'member-2', now: plus(NOW, DAY_MS) });
      await store.changeLeadStage({ ...move, stage: 'contacted', memberId: 'nobody', now: plus(NOW, 2 * DAY_MS) });
      const last = await store.changeLeadStage({ ...move, stage: 'won', memberId: null, now: NOW });
      if (last.kind !== 'changed') throw new Error(last.kind);
      const { updatedAt } = last.lead;

      const byMember = { ...event, action: 'lead-stage-changed', leadId };
      store = await opened().reopen();
      expect(await store.listAuditEvents(studioId, leadId)).toEqual([
        { ...byMember, memberId: null, time: updatedAt, from: 'contacted', to: 'won' },
        { ...byMember, memberId: 'member-2', time: plus(updatedAt, -1), from: 'new', to: 'contacted' },
      ]);
      expect(await store.findLead(studioId, leadId)).toEqual(last.lead);
      expect(await store.listAuditEvents(studioId, null)).toEqual([]);
      expect(await store.listAuditEvents('studio-2', leadId)).toEqual([]);
    });

    test('include the calling program, for every action', async () => {
      const by = (caller: string) => ({ memberId: 'member-1', caller, now: NOW });
      await store.putStudio(aStudio(), by('studio-maker'));
      await store.putStudio(aStudio({ status: 'suspended' }), by('studio-stopper'));
      const key = anApiKey();
      await store.createApiKey(key, NOW, 'key-maker');
      const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
      await store.replaceApiKey({ studioId: STUDIO_ID, keyId: key.id, ...secret, ...by('key-replacer') });
      await store.revokeApiKey(STUDIO_ID, key.id, by('key-revoker'));
      const lead = await created();
      const { id: leadId, studioId } = lead;
      await store.changeLeadStage({ studioId, leadId, stage: 'contacted', claims: claimsOf(lead), ...by('mover') });
      const correction = { displayName: 'Grace' };
      await store.updateLead({
        ...{ studioId, leadId, correction, claims: claimsOf(lead), expectedUpdatedAt: null },
        ...by('corrector'),
      });
      await store.eraseLead({ studioId, leadId, ...by('eraser') });

      store = await opened().reopen();
      const callersOf = (events: readonly AuditEvent[]) => events.map(({ caller }) => caller).toSorted();
      expect(callersOf(await store.listAuditEvents(studioId, leadId))).toEqual(['corrector', 'eraser', 'mover']);
      expect(callersOf(await store.listAuditEvents(studioId, null))).toEqual(
        ['studio-maker', 'studio-stopper', 'key-maker', 'key-replacer', 'key-revoker'].toSorted(),
      );
    });

    test('do not record what was refused', async () => {
      await store.putStudio(aStudio(), BY);
      const lead = await created();
      await moved(lead, 'won');
      const another = await created(aLead({ contact: lead.contact }), claimsOf(lead, { idempotencyKey: newId() }));
      const claims = claimsOf(another);
      const { id: leadId, studioId } = lead;
      const reopening = { studioId, leadId, stage: 'new', claims, ...BY } as const;
      expect(await store.changeLeadStage(reopening)).toMatchObject({ kind: 'already-open' });
      const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
      await store.replaceApiKey({ studioId, keyId: newId(), memberId: 'member-1', ...secret, now: NOW });
      await store.revokeApiKey(studioId, newId(), BY);

      expect(await store.listAuditEvents(studioId, leadId)).toHaveLength(1);
      expect(await store.listAuditEvents(studioId, null)).toHaveLength(1);
    });

    test('are in the order of the changes to a studio or key, whatever the clocks of the writers', async () => {
      const key = anApiKey();
      const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
      const by = (ms: number, memberId: string) => ({ memberId, now: plus(NOW, ms) });
      await store.putStudio(aStudio(), by(0, 'ahead'));
      await store.putStudio(aStudio({ status: 'suspended' }), by(-5000, 'behind'));
      await store.putStudio(aStudio(), by(-5001, 'further-behind'));
      await store.createApiKey(key, plus(NOW, 0));
      await store.replaceApiKey({ studioId: STUDIO_ID, keyId: key.id, ...secret, ...by(-1, 'behind') });
      await store.revokeApiKey(STUDIO_ID, key.id, by(-2000, 'further-behind'));

      store = await opened().reopen();
      const events = await store.listAuditEvents(STUDIO_ID, null);
      const actorsOf = (apiKeyId: string | null) =>
        events.filter((event) => event.apiKeyId === apiKeyId).map(({ memberId }) => memberId);
      expect(actorsOf(null)).toEqual(['further-behind', 'behind', 'ahead']);
      expect(actorsOf(key.id)).toEqual(['further-behind', 'behind', key.memberId]);
    });

    test('record each of many concurrent changes through two stores once, in order', async () => {
      const another = await opened().another();
      const lead = await created();
      const { id: leadId, studioId } = lead;
      await store.putStudio(aStudio(), BY);
      const through = (index: number) => (index % 2 ? store : another);
      const outcomes = await Promise.all(
        times(24, (index) =>
          through(index).changeLeadStage({
            studioId,
            leadId,
            stage: OPEN_STAGES[index % OPEN_STAGES.length] as LeadStage,
            claims: claimsOf(lead),
            memberId: `member-${index}`,
            now: NOW,
          }),
        ),
      );
      await Promise.all(
        times(24, (index) => through(index).putStudio(aStudio({ status: index % 3 ? 'active' : 'suspended' }), BY)),
      );

      const moves = (await store.listAuditEvents(studioId, leadId)).toReversed();
      const movers = outcomes.flatMap(({ kind }, index) => (kind === 'changed' ? [`member-${index}`] : []));
      expect(moves.map(({ memberId }) => memberId).sort()).toEqual(movers.sort());
      expect(moves.map(({ from }) => from)).toEqual(['new', ...moves.map(({ to }) => to)].slice(0, -1));
      expect(moves.at(-1)?.to).toBe((await store.findLead(studioId, leadId))?.stage);
      const statuses = (await store.listAuditEvents(studioId, null)).toReversed();
      expect(statuses.map(({ from }) => from)).toEqual([null, ...statuses.map(({ to }) => to)].slice(0, -1));
      expect(statuses.at(-1)?.to).toBe((await store.findStudio(studioId))?.status);
    });
  });
}

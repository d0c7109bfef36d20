import { beforeEach, describe, expect, test } from 'vitest';
import { AUDIT_ACTIONS, type AuditEvent, OF_DEPLOYMENT } from '../../src/domain/audit.ts';
import type { MemberRole } from '../../src/domain/studio.ts';
import type { AuditPart } from '../../src/store/port/audit.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  claimsOf,
  DAY_MS,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, correctLead, moveLead, replacementOf } from './store-actions.ts';

/** The promises about audit events. */
export function auditContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created } = actionsOn(() => store);

  describe('audit events', () => {
    /** An event of the studio, `ms` after NOW. */
    const event = (action: AuditEvent['action'], ms: number, fields: Partial<AuditEvent> = {}) => ({
      studioId: STUDIO_ID,
      memberId: null,
      caller: null,
      callId: null,
      apiKeyId: null,
      leadId: null,
      from: null,
      to: null,
      action,
      time: plus(NOW, ms),
      ...fields,
    });

    test('record changes of a studio and its keys, newest first, with actor and time, and survive a restart', async () => {
      const at = (ms: number, memberId: string | null) => ({ memberId, now: plus(NOW, ms) });
      await store.putStudio(aStudio(), at(0, null));
      await store.putStudio(aStudio({ regionCode: 'DE' }), at(1, 'member-9'));
      const key = anApiKey();
      await store.createApiKey(key, plus(NOW, 2));
      await store.replaceApiKey(replacementOf(key, { memberId: 'member-2', now: plus(NOW, 3) }));
      await store.putStudio(aStudio({ status: 'suspended' }), at(4, 'member-3'));
      await store.putStudio(aStudio({ status: 'suspended' }), at(5, 'member-9'));
      await store.revokeApiKey(STUDIO_ID, key.id, at(6, 'member-4'));
      await store.revokeApiKey(STUDIO_ID, key.id, at(7, 'member-9'));
      await store.putStudio(aStudio(), at(8, null));
      const apiKeyId = key.id;

      store = await opened().reopen();
      expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
        [
          event('studio-status-changed', 0, { to: 'active' }),
          event('studio-region-changed', 1, { memberId: 'member-9', to: 'DE' }),
          event('api-key-created', 2, { memberId: 'member-1', apiKeyId }),
          event('api-key-replaced', 3, { memberId: 'member-2', apiKeyId }),
          event('studio-status-changed', 4, { memberId: 'member-3', from: 'active', to: 'suspended' }),
          event('studio-region-changed', 4, { memberId: 'member-3', from: 'DE' }),
          event('api-key-revoked', 6, { memberId: 'member-4', apiKeyId }),
          event('studio-status-changed', 8, { from: 'suspended', to: 'active' }),
        ].toReversed(),
      );
      expect(await store.listAuditEvents('studio-2', null)).toEqual([]);
    });

    // @proves quota-4
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

      const byMember = { memberId: 'member-1' };
      const byCaller = { ...byMember, caller: 'crm' };
      const apiKeyId = key.id;
      store = await opened().reopen();
      expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
        [
          event('studio-status-changed', 0, { ...byMember, to: 'active' }),
          event('studio-quota-changed', 0, { ...byMember, to: '100' }),
          event('api-key-created', 1, { ...byMember, apiKeyId }),
          event('studio-status-changed', 2, { ...byCaller, from: 'active', to: 'suspended' }),
          event('studio-quota-changed', 2, { ...byCaller, from: '100', to: '2000' }),
          event('studio-quota-changed', 5, { ...byMember, from: '2000' }),
          event('api-key-quota-changed', 6, { ...byCaller, apiKeyId, to: '7' }),
          event('api-key-quota-changed', 8, { ...byMember, apiKeyId, from: '7' }),
        ].toReversed(),
      );
    });

    test('record who may manage keys and what region counts: the coming, role and going of each member, and each region', async () => {
      const at = (ms: number) => ({ memberId: 'member-1', caller: 'crm', now: plus(NOW, ms) });
      // The longest id that there is.
      const id = 'm'.repeat(64);
      const member = (role: MemberRole) => aMember({ id, role });
      await store.putStudio(aStudio({ regionCode: 'DE' }), at(0));
      await store.putMember(member('staff'), at(1));
      await store.putMember(member('staff'), at(2));
      await store.putMember(member('admin'), at(3));
      await store.removeMember(STUDIO_ID, id, at(4));
      await store.removeMember(STUDIO_ID, id, at(5));
      expect(await store.putMember(aMember({ studioId: 'studio-2' }), at(6))).toBe('no-studio');
      await store.putStudio({ id: STUDIO_ID, status: undefined, regionCode: 'DE' }, at(7));
      await store.putStudio({ id: STUDIO_ID, status: undefined, regionCode: null }, at(8));

      const by = { memberId: 'member-1', caller: 'crm' };
      store = await opened().reopen();
      expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
        [
          event('studio-status-changed', 0, { ...by, to: 'active' }),
          event('studio-region-changed', 0, { ...by, to: 'DE' }),
          event('studio-member-changed', 1, { ...by, to: `${id} staff` }),
          event('studio-member-changed', 3, { ...by, from: `${id} staff`, to: `${id} admin` }),
          event('studio-member-changed', 4, { ...by, from: `${id} admin` }),
          event('studio-region-changed', 8, { ...by, from: 'DE' }),
        ].toReversed(),
      );
    });

    test('record changes of a lead, without effect on how the lead is read', async () => {
      const lead = await created();
      const { id: leadId, studioId } = lead;
      await moveLead(store, lead, 'contacted', { memberId: 'member-2', now: plus(NOW, DAY_MS) });
      await moveLead(store, lead, 'contacted', { memberId: 'member-3', now: plus(NOW, 2 * DAY_MS) });
      const last = await moveLead(store, lead, 'won');
      if (last.kind !== 'changed') throw new Error(last.kind);
      const { updatedAt } = last.lead;

      store = await opened().reopen();
      expect(await store.listAuditEvents(studioId, leadId)).toEqual([
        event('lead-stage-changed', 0, { leadId, time: updatedAt, from: 'contacted', to: 'won' }),
        event('lead-stage-changed', 0, {
          leadId,
          memberId: 'member-2',
          time: plus(updatedAt, -1),
          from: 'new',
          to: 'contacted',
        }),
      ]);
      expect(await store.findLead(studioId, leadId)).toEqual(last.lead);
      expect(await store.listAuditEvents(studioId, null)).toEqual([]);
      expect(await store.listAuditEvents('studio-2', leadId)).toEqual([]);
    });

    // @proves audit-1
    test('include the calling program and the id of the call, for every action', async () => {
      const by = (caller: string) => ({ memberId: 'member-1', caller, callId: `call.of-${caller}`, now: NOW });
      await store.putStudio(aStudio(), by('studio-maker'));
      await store.putStudio(aStudio({ status: 'suspended' }), by('studio-stopper'));
      await store.putStudio(aStudio({ status: 'suspended', regionCode: 'DE' }), by('studio-mover'));
      await store.putStudio(aStudio({ status: 'suspended', regionCode: 'DE', quotaLimit: 9 }), by('studio-limiter'));
      await store.putStudio(
        { id: STUDIO_ID, status: undefined, regionCode: undefined, keepEnquiries: false },
        by('keeper'),
      );
      await store.putStudio(
        { id: STUDIO_ID, status: undefined, regionCode: undefined, retentionDays: 30 },
        by('retainer'),
      );
      await store.putMember(aMember(), by('member-maker'));
      await store.removeMember(STUDIO_ID, aMember().id, by('member-remover'));
      const key = anApiKey();
      await store.createApiKey(key, NOW, by('key-maker'));
      await store.replaceApiKey(replacementOf(key, by('key-replacer')));
      await store.putApiKeyQuota(STUDIO_ID, key.id, 9, by('key-limiter'));
      await store.revokeApiKey(STUDIO_ID, key.id, by('key-revoker'));
      const source = aLeadSource();
      for (const enabled of [true, false, false]) await store.putLeadSource({ ...source, enabled }, by('source-maker'));
      await store.removeLeadSource(STUDIO_ID, source.id, by('source-remover'));
      const lead = aLead();
      await store.createLead(lead, claimsOf(lead), { now: NOW, by: by('creator') });
      const { id: leadId, studioId } = lead;
      await moveLead(store, lead, 'contacted', by('mover'));
      await correctLead(store, lead, { displayName: 'Grace' }, by('corrector'));
      await store.eraseLead({ studioId, leadId, ...by('eraser') });
      for (const each of [STUDIO_ID, OF_DEPLOYMENT, 'studio-none'])
        await store.recordAct(each, { action: 'leads-resent', to: 'relay' }, by('resender'));
      await store.recordAct(STUDIO_ID, { action: 'leads-set-aside', from: 'ANY', to: 'relay' }, by('parker'));
      const outcome = await store.createConsumer({ ...aConsumer(), createdAt: NOW }, by('consumer-maker'));
      if (outcome.kind !== 'created') expect.fail(outcome.kind);
      for (const number of [outcome.consumer.number, 99]) await store.removeConsumer(number, by('consumer-remover'));
      await store.raiseEpoch(NOW, NOW, by('restorer'));
      const ofLead = await store.listAuditEvents(studioId, leadId);
      expect(ofLead.map(({ caller }) => caller).toReversed()).toEqual(['creator', 'mover', 'corrector', 'eraser']);
      expect(await store.deleteLeads(STUDIO_ID, 10, by('deleter'))).toBe(1);
      expect(await store.deleteLeads(STUDIO_ID, 10, by('deleter'))).toBe(0);

      store = await opened().reopen();
      const callersOf = (events: readonly AuditEvent[]) => events.map(({ caller }) => caller).toReversed();
      expect(await store.listAuditEvents(studioId, leadId)).toEqual([]);
      const ofStudio = await store.listAuditEvents(studioId, null);
      expect(callersOf(ofStudio.filter((each) => each.apiKeyId === null))).toEqual([
        'studio-maker',
        'studio-stopper',
        'studio-mover',
        'studio-limiter',
        'keeper',
        'retainer',
        'member-maker',
        'member-remover',
        'source-maker',
        'source-maker',
        'source-remover',
        'resender',
        'parker',
        'deleter',
      ]);
      expect(callersOf(ofStudio.filter((each) => each.apiKeyId !== null))).toEqual([
        'key-maker',
        'key-replacer',
        'key-limiter',
        'key-revoker',
      ]);
      const ofAll = await store.listAuditEvents(OF_DEPLOYMENT, null);
      expect(callersOf(ofAll)).toEqual(['resender', 'consumer-maker', 'consumer-remover', 'restorer']);
      const all = [...ofLead, ...ofStudio, ...ofAll];
      // No core writes events of holds any more.
      const written = AUDIT_ACTIONS.filter((action) => !action.endsWith('-hold-changed'));
      expect(new Set(all.map((each) => each.action))).toEqual(new Set(written));
      for (const { caller, callId } of all) expect(callId).toBe(`call.of-${caller}`);
    });

    test('are in the order of the changes to a studio or key, whatever the clocks of the writers', async () => {
      const key = anApiKey();
      const by = (ms: number, memberId: string) => ({ memberId, now: plus(NOW, ms) });
      await store.putStudio(aStudio(), by(0, 'ahead'));
      await store.putStudio(aStudio({ status: 'suspended' }), by(-5000, 'behind'));
      await store.putStudio(aStudio(), by(-5001, 'further-behind'));
      await store.createApiKey(key, plus(NOW, 0));
      await store.replaceApiKey(replacementOf(key, by(-1, 'behind')));
      await store.revokeApiKey(STUDIO_ID, key.id, by(-2000, 'further-behind'));

      store = await opened().reopen();
      const events = await store.listAuditEvents(STUDIO_ID, null);
      const actorsOf = (apiKeyId: string | null) =>
        events.filter((event) => event.apiKeyId === apiKeyId).map(({ memberId }) => memberId);
      expect(actorsOf(null)).toEqual(['further-behind', 'behind', 'ahead']);
      expect(actorsOf(key.id)).toEqual(['further-behind', 'behind', key.memberId]);
    });

    // @proves audit-4
    test('are walked once each in a range of times, those of a record in their order, whatever is added meanwhile', async () => {
      const by = (ms: number) => ({ memberId: 'member-1', now: plus(NOW, ms) });
      const keys = times(60, () => anApiKey());
      await store.putStudio(aStudio(), by(-DAY_MS));
      const replaced = (index: number, apiKeyId: string) =>
        event('api-key-replaced', index, { apiKeyId, memberId: 'member-1' });
      await opened().fill({ keys, events: keys.flatMap(({ id }) => times(20, (index) => replaced(index - 10, id))) });
      for (const each of [OF_DEPLOYMENT, STUDIO_ID]) await store.recordAct(each, { action: 'leads-resent' }, by(3));
      const lead = aLead({ createdAt: NOW });
      await store.createLead(lead, claimsOf(lead), { now: NOW, by: by(4) });
      await moveLead(store, lead, 'contacted', { now: plus(NOW, 5) });
      await moveLead(store, lead, 'won', { now: plus(NOW, DAY_MS) });
      const range = { start: NOW, end: plus(NOW, 9) };

      const walked: AuditEvent[] = [];
      for (let after: string | null = null; ; ) {
        const { events, next }: AuditPart = await store.walkAuditEvents(range, after);
        walked.push(...events.filter(({ action }) => action !== 'consumer-changed'));
        await store.recordAct(STUDIO_ID, { action: 'consumer-changed' }, by(1));
        if (next === null) break;
        expect(next).not.toBe(after);
        after = next;
      }
      const ofRecord = (id: string) => walked.filter((each) => (each.leadId ?? each.apiKeyId ?? each.studioId) === id);
      for (const id of [OF_DEPLOYMENT, STUDIO_ID])
        expect(ofRecord(id).map(({ action }) => action)).toEqual(['leads-resent']);
      expect(ofRecord(lead.id).map(({ action }) => action)).toEqual(['lead-created', 'lead-stage-changed']);
      for (const { id } of keys) expect(ofRecord(id)).toEqual(times(9, (index) => replaced(index, id)));
      expect(walked).toHaveLength(4 + 60 * 9);
    });

    // @proves audit-4 audit-5 bounds-145
    test('of records with thousands are walked in parts, each once, whatever is added between them, and from any part on', async () => {
      await store.putStudio(aStudio(), { memberId: null, now: plus(NOW, -1) });
      const numbered = (count: number, apiKeyId: string | null, from = 0) =>
        times(count, (index) => event('api-key-replaced', from + index, { apiKeyId, memberId: `m-${index}` }));
      const [small, ending, large] = [anApiKey(), anApiKey(), anApiKey()];
      const ofStudio = numbered(5101, null);
      // The range ends within the second one's history: on MongoDB so few of its events are left that a part has those of the third as well.
      const ofKeys = [numbered(999, small.id), numbered(1999, ending.id, DAY_MS - 1500), numbered(1400, large.id)];
      await opened().fill({ keys: [small, ending, large], events: [ofStudio, ...ofKeys].flat() });
      const range = { start: NOW, end: plus(NOW, DAY_MS) };
      const added = { memberId: 'added', now: plus(NOW, 1) };
      /** On MongoDB some events move with the first, and with the last. */
      let additions = 4;

      async function walk(from: string | null) {
        const parts: AuditPart[] = [];
        for (let after = from; ; ) {
          const part = await store.walkAuditEvents(range, after);
          expect(part.events.length).toBeLessThanOrEqual(2200);
          parts.push({ ...part, events: part.events.filter(({ memberId }) => memberId !== added.memberId) });
          if (part.next === null) return parts;
          after = part.next;
          if (part.events.length === 0 || additions === 0) continue;
          additions -= 1;
          for (const _ of times(27, () => {})) await store.recordAct(STUDIO_ID, { action: 'leads-resent' }, added);
        }
      }
      const eventsOf = (parts: readonly AuditPart[]) => parts.flatMap(({ events }) => events);

      const parts = await walk(null);
      expect(additions).toBe(0);
      for (const each of [ofStudio, ...ofKeys])
        expect(eventsOf(parts).filter(({ apiKeyId }) => apiKeyId === each[0]?.apiKeyId)).toEqual(
          each.filter(({ time }) => time < range.end),
        );
      for (const index of [0, Math.floor(parts.length / 2), parts.length - 2])
        expect(eventsOf(await walk(parts[index]?.next ?? null))).toEqual(eventsOf(parts.slice(index + 1)));
    });
  });
}

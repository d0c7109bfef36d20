import { beforeEach, describe, expect, test } from 'vitest';
import { AUDIT_ACTIONS, type AuditContext, type AuditEvent, OF_DEPLOYMENT } from '../../src/domain/audit.ts';
import type { MemberRole } from '../../src/domain/studio.ts';
import type { AuditPart } from '../../src/store/port/audit.ts';
import type { StudioPut } from '../../src/store/port/directory.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  DAY_MS,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { aReplacement, correctLead, moveLead } from './store-actions.ts';

/** The promises about audit events. */
export function auditContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });

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

    // @proves audit-1
    test('every change leaves an audit event with its actor, call, time and both values', async () => {
      // The longest valid member id.
      const [id, studioId, key, source] = ['m'.repeat(64), STUDIO_ID, anApiKey(), aLeadSource()];
      const lead = aLead({ createdAt: plus(NOW, -DAY_MS) });
      const leadRef = { studioId, leadId: lead.id };
      type By = AuditContext & { readonly memberId: string };
      type Written = readonly [AuditEvent['action'], from?: string | null, to?: string | null];
      const put = (change: Partial<StudioPut>) => (by: By) =>
        store.putStudio({ id: studioId, status: undefined, regionCode: undefined, ...change }, by);
      const suspend = put({ status: 'suspended', quotaLimit: 2_000, regionCode: null });
      const role = (role: MemberRole) => (by: By) => store.putMember(aMember({ id, role }), by);
      const quota = (limit: number | null) => (by: By) => store.putApiKeyQuota(studioId, key.id, limit, by);
      const revoke = (by: By) => store.revokeApiKey(studioId, key.id, by);
      const remove = (by: By) => store.removeMember(studioId, id, by);
      const enable = (enabled: boolean) => (by: By) => store.putLeadSource({ ...source, enabled }, by);
      const removeSource = (by: By) => store.removeLeadSource(studioId, source.id, by);
      const removeConsumer = (by: By) => store.removeConsumer(1, by);
      const deleteLeads = (by: By) => store.deleteLeads(studioId, 10, by);
      const [status, region, limit] = [
        'studio-status-changed',
        'studio-region-changed',
        'studio-quota-changed',
      ] as const;
      const [member, quotaOfKey] = ['studio-member-changed', 'api-key-quota-changed'] as const;
      const acts: readonly (readonly [act: (by: By) => Promise<unknown>, ...Written[]])[] = [
        [put({ status: 'active', quotaLimit: 100 }), [status, null, 'active'], [limit, null, '100']],
        [put({ regionCode: 'DE' }), [region, null, 'DE']],
        [(by) => store.createApiKey(key, by.now, by), ['api-key-created']],
        [(by) => store.replaceApiKey(aReplacement(key, by)), ['api-key-replaced']],
        [suspend, [status, 'active', 'suspended'], [limit, '100', '2000'], [region, 'DE', null]],
        [suspend],
        [put({ quotaLimit: null }), [limit, '2000', null]],
        [put({ keepEnquiries: false }), ['studio-enquiries-changed', 'kept', 'not kept']],
        [put({ retentionDays: 30 }), ['studio-retention-changed', null, '30']],
        [quota(7), [quotaOfKey, null, '7']],
        [quota(7)],
        [quota(null), [quotaOfKey, '7', null]],
        [revoke, ['api-key-revoked']],
        [revoke],
        [role('staff'), [member, null, `${id} staff`]],
        [role('staff')],
        [role('admin'), [member, `${id} staff`, `${id} admin`]],
        [remove, [member, `${id} admin`, null]],
        [remove],
        [(by) => store.putMember(aMember({ studioId: 'studio-2' }), by)],
        [enable(true), ['studio-source-changed', null, `${source.id} enabled`]],
        [enable(false), ['studio-source-changed', `${source.id} enabled`, `${source.id} disabled`]],
        [enable(false)],
        [removeSource, ['studio-source-changed', `${source.id} disabled`, null]],
        [removeSource],
        [(by) => store.createLead(lead, keysFor(lead), { now: by.now, by }), ['lead-created', null, 'new']],
        [(by) => moveLead(store, lead, 'contacted', by), ['lead-stage-changed', 'new', 'contacted']],
        [(by) => moveLead(store, lead, 'contacted', by)],
        [(by) => correctLead(store, lead, { displayName: 'Grace' }, by), ['lead-updated', null, 'displayName']],
        [(by) => store.eraseLead({ ...leadRef, ...by }), ['lead-erased']],
        [
          (by) => store.recordAct(OF_DEPLOYMENT, { action: 'leads-resent', to: 'relay' }, by),
          ['leads-resent', null, 'relay'],
        ],
        [
          (by) => store.recordAct(studioId, { action: 'leads-set-aside', from: 'ANY', to: 'relay' }, by),
          ['leads-set-aside', 'ANY', 'relay'],
        ],
        [(by) => store.recordAct('studio-none', { action: 'leads-resent' }, by)],
        [(by) => store.createConsumer(aConsumer({ createdAt: by.now }), by), ['consumer-changed', null, 'relay']],
        [removeConsumer, ['consumer-changed', 'relay', null]],
        [removeConsumer],
        [(by) => store.raiseEpoch(NOW, by.now, by), ['database-restored', null, plus(NOW, -300_000).toISOString()]],
        [deleteLeads, ['studio-emptied', null, '1']],
        [deleteLeads],
      ];
      const expected: AuditEvent[] = [];
      const found = async (of: string, leadId: string | null = null) =>
        (await store.listAuditEvents(of, leadId)).toReversed();
      let erasedEvents: readonly AuditEvent[] = [];
      for (const [ms, [act, ...events]] of acts.entries()) {
        const by = { memberId: `member-${ms}`, caller: `caller-${ms}`, callId: `call.${ms}`, now: plus(NOW, ms) };
        await act(by);
        for (const [action, from = null, to = null] of events) {
          const { now, ...actor } = { ...by, ...(action === 'api-key-created' && { memberId: key.memberId }) };
          const of = {
            studioId: /^(?:leads-resent|consumer|database)/.test(action) ? OF_DEPLOYMENT : studioId,
            apiKeyId: action.startsWith('api-key') ? key.id : null,
            leadId: action.startsWith('lead-') ? lead.id : null,
          };
          expected.push({ action, ...actor, ...of, from, to, time: now });
        }
        if (events[0]?.[0] === 'lead-erased') erasedEvents = await found(studioId, lead.id);
      }

      store = await opened().reopen();
      const all = [...erasedEvents, ...(await found(studioId)), ...(await found(OF_DEPLOYMENT))];
      const inOrder = (events: readonly AuditEvent[]) => events.toSorted((a, b) => a.time.getTime() - b.time.getTime());
      expect(inOrder(all)).toEqual(expected);
      expect(await found(studioId)).toEqual(inOrder(await found(studioId)));
      for (const each of [studioId, 'studio-2']) expect(await found(each, lead.id)).toEqual([]);
      expect(await found('studio-2')).toEqual([]);
      // Cores no longer write hold events.
      const written = AUDIT_ACTIONS.filter((action) => !action.endsWith('-hold-changed'));
      expect(new Set(expected.map(({ action }) => action))).toEqual(new Set(written));
    });

    test("audit events keep the order of changes to a studio or key, whatever the writers' clocks", async () => {
      const key = anApiKey();
      const by = (ms: number, memberId: string) => ({ memberId, now: plus(NOW, ms) });
      await store.putStudio(aStudio(), by(0, 'ahead'));
      await store.putStudio(aStudio({ status: 'suspended' }), by(-5000, 'behind'));
      await store.putStudio(aStudio(), by(-5001, 'further-behind'));
      await store.createApiKey(key, plus(NOW, 0));
      await store.replaceApiKey(aReplacement(key, by(-1, 'behind')));
      await store.revokeApiKey(STUDIO_ID, key.id, by(-2000, 'further-behind'));

      store = await opened().reopen();
      const events = await store.listAuditEvents(STUDIO_ID, null);
      const listActors = (apiKeyId: string | null) =>
        events.filter((event) => event.apiKeyId === apiKeyId).map(({ memberId }) => memberId);
      expect(listActors(null)).toEqual(['further-behind', 'behind', 'ahead']);
      expect(listActors(key.id)).toEqual(['further-behind', 'behind', key.memberId]);
    });

    // @proves audit-4
    test('pages through the audit events of a time range exactly once while others are written', async () => {
      const by = (ms: number) => ({ memberId: 'member-1', now: plus(NOW, ms) });
      const keys = times(60, () => anApiKey());
      await store.putStudio(aStudio(), by(-DAY_MS));
      const replaced = (index: number, apiKeyId: string) =>
        event('api-key-replaced', index, { apiKeyId, memberId: 'member-1' });
      await opened().fill({ keys, events: keys.flatMap(({ id }) => times(20, (index) => replaced(index - 10, id))) });
      for (const each of [OF_DEPLOYMENT, STUDIO_ID]) await store.recordAct(each, { action: 'leads-resent' }, by(3));
      const lead = aLead({ createdAt: NOW });
      await store.createLead(lead, keysFor(lead), { now: NOW, by: by(4) });
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
      const listFor = (id: string) => walked.filter((each) => (each.leadId ?? each.apiKeyId ?? each.studioId) === id);
      for (const id of [OF_DEPLOYMENT, STUDIO_ID])
        expect(listFor(id).map(({ action }) => action)).toEqual(['leads-resent']);
      expect(listFor(lead.id).map(({ action }) => action)).toEqual(['lead-created', 'lead-stage-changed']);
      for (const { id } of keys) expect(listFor(id)).toEqual(times(9, (index) => replaced(index, id)));
      expect(walked).toHaveLength(4 + 60 * 9);
    });

    // @proves audit-4 audit-5 bounds-145
    test('pages through thousands of audit events once, from any position, while others are written', async () => {
      await store.putStudio(aStudio(), { memberId: null, now: plus(NOW, -1) });
      const numbered = (count: number, apiKeyId: string | null, from = 0) =>
        times(count, (index) => event('api-key-replaced', from + index, { apiKeyId, memberId: `m-${index}` }));
      const [small, ending, large] = [anApiKey(), anApiKey(), anApiKey()];
      const studioEvents = numbered(5101, null);
      // The range ends within the second key's history, so on MongoDB its last part also has the third key's events.
      const keyEvents = [numbered(999, small.id), numbered(1999, ending.id, DAY_MS - 1500), numbered(1400, large.id)];
      await opened().fill({ keys: [small, ending, large], events: [studioEvents, ...keyEvents].flat() });
      const range = { start: NOW, end: plus(NOW, DAY_MS) };
      const added = { memberId: 'added', now: plus(NOW, 1) };
      /** The additions left. On MongoDB the first and the last move old events out of the studio's history. */
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
      const listEvents = (parts: readonly AuditPart[]) => parts.flatMap(({ events }) => events);

      const parts = await walk(null);
      expect(additions).toBe(0);
      for (const each of [studioEvents, ...keyEvents])
        expect(listEvents(parts).filter(({ apiKeyId }) => apiKeyId === each[0]?.apiKeyId)).toEqual(
          each.filter(({ time }) => time < range.end),
        );
      for (const index of [0, Math.floor(parts.length / 2), parts.length - 2])
        expect(listEvents(await walk(parts[index]?.next ?? null))).toEqual(listEvents(parts.slice(index + 1)));
    });
  });
}

import { inspect } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ApiKey, MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import type { Lead, LeadClaims } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { LeadSource } from '../../src/domain/studio.ts';
import { NO_NAME, NO_TIME } from '../../src/store/checked.ts';
import { type Store, UnreadableRecord } from '../../src/store/store.ts';
import {
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  claimsOf,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type Damage, type OpenedStore, ofKinds } from './opened-store.ts';
import { actionsOn, correctLead, keysIn, moveLead, replacementOf, sourcesIn } from './store-actions.ts';

/** The promises about records that this release did not write or cannot read. */
export function unreadableRecordsContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, everyLead } = actionsOn(() => store);

  // @proves limits-1 mongodb-15 sqlite-9
  describe('unreadable records', () => {
    const damagesOf = (...kinds: readonly Damage['kind'][]) => ofKinds(damages, ...kinds);
    const [unknownStage, unknownStatus, unknownScope] = ['stage', 'status', 'scopes'].map((word) =>
      damages.find(({ field }) => field === word),
    ) as [Damage, Damage, Damage];

    beforeEach(async () => {
      await store.putStudio(aStudio(), BY);
      await store.putMember(aMember(), BY);
    });

    test.each(damagesOf('lead'))('$title: only requests for it fail, and its claims stay', async ({ damage }) => {
      const leads = times(3, () => aLead());
      const claims = leads.map((lead) => claimsOf(lead));
      for (const [index, lead] of leads.entries()) await created(lead, claims[index]);
      const theirs = await created(aLead({ studioId: 'studio-2' }));
      const [oldest, bad, newest] = leads as [Lead, Lead, Lead];
      await opened().damage(damage, bad);

      // Concurrently, so that one batch reads them.
      const [own, ...others] = await Promise.allSettled([
        store.findLead(STUDIO_ID, bad.id),
        store.findLead('studio-2', theirs.id),
        store.findLead(STUDIO_ID, newest.id),
        everyLead(),
        everyLead('studio-2'),
      ]);
      await expect(store.presenceOfLead(STUDIO_ID, bad.id)).resolves.toBe('present');
      expect(own).toMatchObject({ status: 'rejected', reason: { constructor: UnreadableRecord, kind: 'lead' } });
      expect(others.map((other) => 'value' in other && other.value)).toEqual([
        theirs,
        newest,
        [newest, oldest],
        [theirs],
      ]);
      expect(opened().reported).toMatchObject([{ kind: 'lead', id: bad.id }]);

      // A replay returns the original data, so it does not depend on the current stage and time.
      const isMutable = /^(?:stage|updated_?at)$/i.test(damage.field);
      const { idempotencyKey, fingerprint } = claims[1] as LeadClaims;
      const repeated = await Promise.allSettled([
        store.createLead({ ...bad, id: newId() }, claims[1] as LeadClaims),
        store.findLeadByIdempotencyKey(STUDIO_ID, idempotencyKey),
      ]);
      expect(repeated.map((outcome) => ('value' in outcome ? outcome.value : outcome.reason.name))).toEqual(
        isMutable
          ? [
              { kind: 'replayed', lead: bad },
              { lead: bad, fingerprint },
            ]
          : times(2, () => 'UnreadableRecord'),
      );
      const rival = aLead({ contact: bad.contact });
      expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: bad.id });
      await expect(moveLead(store, bad, 'won')).rejects.toThrow(UnreadableRecord);
      expect(await store.listAuditEvents(STUDIO_ID, bad.id)).toEqual([]);
      expect(await everyLead()).toEqual([newest, oldest]);
    });

    // @proves limits-5
    test.each(damagesOf('lead'))('each read that leaves it out says so: $title', async ({ damage }) => {
      const [bad, good] = [await created(), await created()];
      const { contactKeys } = claimsOf(bad);
      await opened().damage(damage, bad);

      expect(await store.listLeads(STUDIO_ID, null, 10)).toMatchObject({ records: [good], skipped: 1 });
      expect(await store.walkLeads(STUDIO_ID, null, 10)).toMatchObject({ records: [good], skipped: 1 });
      expect(await store.findLeadsOfContact(STUDIO_ID, contactKeys)).toEqual({ leads: [], unreadable: [bad.id] });
    });

    const DAMAGES_OF_LEADS = damagesOf('lead', 'creation', 'original', 'claim', 'mark', 'lead with events');
    // @proves limits-5
    test.each(DAMAGES_OF_LEADS)(
      '$title: it is erased, unless its stage or times are unreadable',
      async ({ damage }) => {
        const lead = await created();
        await opened().damage(damage, lead);

        const erasing = store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: NOW });
        if (/^(?:stage|created_?at|updated_?at)$/i.test(damage.field)) {
          await expect(erasing).rejects.toThrow(UnreadableRecord);
          return;
        }
        expect(await erasing).toMatchObject({ kind: 'erased' });
        expect(await store.findLead(STUDIO_ID, lead.id)).toBeNull();
        expect(await store.findLeadsOfContact(STUDIO_ID, claimsOf(lead).contactKeys, 'former')).toEqual({
          leads: [],
          unreadable: [],
        });
        expect((await store.walkErasedLeads(STUDIO_ID, null, 10)).leads).toMatchObject([{ id: lead.id }]);
        expect((await store.listLeadChanges(10)).map((change) => change.lead)).toMatchObject([{ id: lead.id }]);
        const [event] = await store.listAuditEvents(STUDIO_ID, lead.id);
        expect(event).toMatchObject({ action: 'lead-erased' });
      },
    );

    test.each(damagesOf('creation'))(
      '$title: its replay is an error and not a conflict, and the lead stays readable',
      async ({ damage }) => {
        const lead = aLead();
        const claims = claimsOf(lead);
        await created(lead, claims);
        await opened().damage(damage, lead);

        for (const again of [claims, claimsOf({ ...lead, note: 'x' }, { idempotencyKey: claims.idempotencyKey })]) {
          const fault = await store.createLead({ ...lead, id: newId() }, again).catch((error) => error);
          expect(fault).toBeInstanceOf(UnreadableRecord);
          expect(fault).toMatchObject({ kind: 'lead', id: lead.id, field: 'fingerprint' });
        }
        await expect(store.findLeadByIdempotencyKey(STUDIO_ID, claims.idempotencyKey)).rejects.toThrow(
          UnreadableRecord,
        );
        expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(lead);
        expect(await everyLead()).toEqual([lead]);
        const rival = aLead({ contact: lead.contact });
        expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: lead.id });
      },
    );

    test.each(damagesOf('claim'))('$title: it stays readable, and its contact stays claimed', async ({ damage }) => {
      const [first, bad, last] = times(3, () => aLead()) as [Lead, Lead, Lead];
      for (const lead of [first, bad, last]) await created(lead);
      await opened().damage(damage, bad);

      const rival = aLead({ contact: bad.contact });
      expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: bad.id });
      expect(await everyLead()).toEqual([last, bad, first]);
      await moveLead(store, bad, 'won');
      expect(await store.createLead(rival, claimsOf(rival))).toMatchObject({ kind: 'created' });
      const { leads: found } = await store.findLeadsOfContact(STUDIO_ID, claimsOf(bad).contactKeys);
      expect(found.map(({ id }) => id).toSorted()).toEqual([bad.id, rival.id].toSorted());
    });

    test('many unreadable leads hide no readable ones and do not fill pages', async () => {
      const leads = times(240, () => aLead());
      await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
      const isBad = (index: number) => (index >= 60 && index < 180) || index % 10 === 0 || index === 239;
      await opened().damage(unknownStage, ...leads.filter((_, index) => isBad(index)));

      const pages = await everyPage(25);

      const good = leads.filter((_, index) => !isBad(index)).toReversed();
      expect(pages.flatMap(({ records }) => records)).toEqual(good);
      expect(pages.map(({ records }) => records.length)).toEqual([25, 25, 25, 25, good.length - 100]);
    });

    test('a page with unreadable leads only has a next page', async () => {
      const first = await created();
      const bad = times(1500, () => aLead());
      await Promise.all(bad.map((lead) => store.createLead(lead, claimsOf(lead))));
      const last = await created();
      await opened().damage(unknownStage, ...bad);

      const pages = await everyPage(1);

      expect(pages.length).toBeLessThan(6);
      expect(pages.flatMap(({ records }) => records)).toEqual([last, first]);
    });

    test('a walk skips any number of unreadable leads', async () => {
      const leads = times(240, () => aLead());
      await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
      const isBad = (index: number) => index === 0 || (index >= 60 && index < 180) || index === 239;
      await opened().damage(unknownStage, ...leads.filter((_, index) => isBad(index)));

      const first = await store.walkLeads(STUDIO_ID, null, 100);
      const second = await store.walkLeads(STUDIO_ID, first.next, 100);

      const good = leads.filter((_, index) => !isBad(index));
      expect([first, second]).toEqual([
        { records: good.slice(0, 100), next: good[99]?.id, skipped: 121 },
        { records: good.slice(100), next: null, skipped: 1 },
      ]);
      expect(opened().reported.map(({ id }) => id)).toContain(leads[239]?.id);
    });

    async function everyPage(limit: number) {
      const pages = [await store.listLeads(STUDIO_ID, null, limit)];
      for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) {
        pages.push(await store.listLeads(STUDIO_ID, next, limit));
        if (pages.length > 1000) throw new Error('the pages do not end');
      }
      return pages;
    }

    test.each(damagesOf('key').filter(({ damage }) => damage !== unknownScope))(
      '$title: it has no credential, is listed, keeps its slot, and can be revoked',
      async ({ damage }) => {
        const keys = times(MAX_LIVE_KEYS, () => anApiKey());
        for (const key of keys) expect(await store.createApiKey(key, NOW)).toBe(true);
        const [bad, good] = keys as [ApiKey, ApiKey];
        await opened().damage(damage, bad);

        const [shut, open] = await Promise.all(
          [bad, good].map(({ secretSha256 }) => store.findCredential(secretSha256)),
        );
        expect(shut).toBeNull();
        expect(open).toMatchObject({ key: good });

        const listed = await keysIn(store, STUDIO_ID);
        expect(listed.map(({ id }) => id)).toEqual(keys.map(({ id }) => id).toReversed());
        expect(listed.at(-1)).toMatchObject({ id: bad.id, expiresAt: NO_TIME });
        // A listed key fits into a response, whatever the record has.
        expect(JSON.stringify(listed.at(-1)).length).toBeLessThan(2000);
        expect(opened().reported).toMatchObject(expect.arrayContaining([expect.objectContaining({ id: bad.id })]));
        await expect(store.replaceApiKey(replacementOf(bad))).rejects.toThrow(UnreadableRecord);

        expect(await store.createApiKey(anApiKey(), NOW)).toBe(false);
        expect(await store.revokeApiKey(STUDIO_ID, bad.id, { ...BY, now: plus(NOW, 1) })).toMatchObject({
          id: bad.id,
          revokedAt: plus(NOW, 1),
        });
        expect(await store.createApiKey(anApiKey(), NOW)).toBe(true);
        expect(await store.listAuditEvents(STUDIO_ID, null)).toMatchObject(
          expect.arrayContaining([expect.objectContaining({ action: 'api-key-revoked', apiKeyId: bad.id })]),
        );
      },
    );

    test.each(damagesOf('key').filter(({ damage }) => damage !== unknownScope))(
      '$title: it frees its slot once its expiry has passed, if that can be read',
      async ({ damage }) => {
        const keys = times(MAX_LIVE_KEYS, () => anApiKey());
        for (const key of keys) await store.createApiKey(key, NOW);
        const [bad, good] = keys as [ApiKey, ApiKey];
        await opened().damage(damage, bad);
        for (const key of keys.slice(1))
          await store.replaceApiKey(replacementOf(key, { expiresAt: plus(bad.expiresAt, 2) }));

        expect(await store.createApiKey(anApiKey(), plus(bad.expiresAt, -1))).toBe(false);
        const isExpiryReadable = !/^expires_?at$/i.test(damage.field);
        const another = () => anApiKey({ expiresAt: plus(bad.expiresAt, 2) });
        expect(await store.createApiKey(another(), bad.expiresAt)).toBe(isExpiryReadable);
        expect(await store.createApiKey(another(), bad.expiresAt)).toBe(false);
        expect(await store.findCredential(bad.secretSha256)).toBeNull();
        expect((await keysIn(store, STUDIO_ID)).map(({ id }) => id)).toContain(good.id);
      },
    );

    test.each([
      ['name', /^name$/, { name: NO_NAME }],
      ['hint', /^secret_?hint$/i, { secretHint: '' }],
    ])('a key whose %s is unreadable has all its other fields', async (_, pattern, shown) => {
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      for (const { damage } of damagesOf('key')) if (pattern.test(damage.field)) await opened().damage(damage, key);

      expect(await keysIn(store, STUDIO_ID)).toEqual([{ ...key, ...shown, expiresAt: NO_TIME }]);
    });

    test('an unknown scope grants nothing and does not affect the others', async () => {
      const key = anApiKey({ scopes: ['leads.read'] });
      await store.createApiKey(key, NOW);
      await opened().damage(unknownScope, key);

      expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
      expect(opened().reported).toEqual([]);
    });

    test.each(damagesOf('studio'))('$title: it is suspended until it is put again', async ({ damage }) => {
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      await opened().damage(damage, { studioId: STUDIO_ID, id: STUDIO_ID });

      const suspended = aStudio({ status: 'suspended' });
      const [own, theirs, credential] = await Promise.all([
        store.findStudio(STUDIO_ID),
        store.findStudio('studio-2'),
        store.findCredential(key.secretSha256),
      ]);
      expect([own, theirs, credential?.studio]).toEqual([suspended, aStudio({ id: 'studio-2' }), suspended]);
      expect(opened().reported[0]).toMatchObject({ kind: 'studio', id: STUDIO_ID });

      for (const status of ['active', 'suspended', 'active'] as const) {
        await expect(store.putStudio(aStudio({ status }), { ...BY, now: plus(NOW, 1) })).resolves.toEqual(
          aStudio({ status }),
        );
        expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ status }));
      }
      expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember());
      expect((await store.listAuditEvents(STUDIO_ID, null)).filter(({ to }) => to === 'suspended')).toHaveLength(1);
    });

    test.each(['active', 'suspended'] as const)(
      'a studio with an unknown status can be made %s, with an audit event without a previous status',
      async (status) => {
        await opened().damage(unknownStatus, { studioId: STUDIO_ID, id: STUDIO_ID });

        await store.putStudio(aStudio({ status, regionCode: 'DE' }), BY);

        expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status, regionCode: 'DE' });
        const [, made] = await store.listAuditEvents(STUDIO_ID, null);
        expect(made).toMatchObject({ action: 'studio-status-changed', from: null, to: status });
      },
    );

    test.each(damagesOf('region'))(
      '$title: it counts as none, and its studio stays readable and can be put',
      async ({ damage }) => {
        const id = 'studio-2';
        await store.putStudio({ id, status: 'active', regionCode: 'DE' }, BY);
        await opened().damage(damage, { studioId: id, id });

        expect(await store.findStudio(id)).toMatchObject({ status: 'active', regionCode: 'DE', formerRegions: [null] });
        await store.putStudio({ id, status: 'active', regionCode: 'AT' }, BY);
        const after = await store.findStudio(id);
        expect(after).toMatchObject({ regionCode: 'AT', formerRegions: expect.arrayContaining(['DE', null]) });
      },
    );

    test.each(damagesOf('member'))('$title has no role, and can be put and removed', async ({ damage }) => {
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      await opened().damage(damage, aMember());

      expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ issuerRole: null });
      expect(opened().reported[0]).toMatchObject({ kind: 'member', id: 'member-1' });

      await store.putMember(aMember(), BY);
      expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember());
      await opened().damage(damage, aMember());
      expect(await store.removeMember(STUDIO_ID, 'member-1', BY)).toBeNull();
      const changes = (await store.listAuditEvents(STUDIO_ID, null)).flatMap(({ action, from, to }) =>
        action === 'studio-member-changed' ? [[from, to]] : [],
      );
      expect(changes).toEqual([
        ['member-1 unknown', null],
        ['member-1 unknown', 'member-1 owner'],
        [null, 'member-1 owner'],
      ]);
    });

    test.each(damagesOf('source'))('$title does not exist until it is put again', async ({ damage }) => {
      const key = anApiKey();
      const sources = times(3, () => aLeadSource());
      await store.createApiKey(key, NOW);
      for (const source of sources) await store.putLeadSource(source);
      const [first, bad, last] = sources as [LeadSource, LeadSource, LeadSource];
      await opened().damage(damage, bad);

      expect(await store.findLeadSource(STUDIO_ID, bad.id)).toBeNull();
      expect(await store.findCredential(key.secretSha256, bad.id)).toMatchObject({ source: null });
      expect(await store.findCredential(key.secretSha256, last.id)).toMatchObject({ source: last });
      expect(await sourcesIn(store, STUDIO_ID)).toEqual([first, last]);
      expect(opened().reported[0]).toMatchObject({ kind: 'lead source', id: bad.id });

      await store.putLeadSource(bad);
      expect(await sourcesIn(store, STUDIO_ID)).toEqual(sources);
    });

    test.each(damagesOf('event'))('$title is skipped', async ({ damage }) => {
      await opened().damage(damage, { studioId: STUDIO_ID, id: STUDIO_ID });
      await store.putStudio(aStudio({ status: 'suspended' }), { ...BY, now: plus(NOW, 1) });

      expect(await store.listAuditEvents(STUDIO_ID, null)).toMatchObject([{ from: 'active', to: 'suspended' }]);
    });

    // Only for stores that keep events in the record itself.
    const eventDamages = [...damagesOf('lead with events'), ...damagesOf('key with events')];
    test.each(eventDamages)('$title: a change of it fails permanently and writes nothing', async ({ damage }) => {
      const lead = await created();
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      const isLead = damage.kind === 'lead with events';
      await opened().damage(damage, isLead ? lead : key);

      const changes = isLead
        ? [() => moveLead(store, lead, 'won'), () => correctLead(store, lead, { note: 'x' })]
        : [() => store.replaceApiKey(replacementOf(key))];
      for (const change of changes) {
        const fault = await change().catch((error) => error);
        expect(fault).toBeInstanceOf(UnreadableRecord);
        const { id } = isLead ? lead : key;
        expect(fault).toMatchObject({ kind: isLead ? 'lead' : 'API key', id, field: damage.field });
      }
      expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(lead);
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
    });

    test('the error about an unreadable record has none of its contents', async () => {
      const lead = await created(aLead({ note: 'calls back after six' }));
      await opened().damage({ ...unknownStage, value: 'between-jobs' }, lead);

      const fault = await store.findLead(STUDIO_ID, lead.id).catch((error) => error);

      expect(fault.message).toBe(`the lead ${lead.id} of studio ${STUDIO_ID} cannot be read: stage is invalid`);
      expect(inspect(fault)).not.toMatch(/between-jobs|calls back|Ada|example\.org/);
    });
  });
}

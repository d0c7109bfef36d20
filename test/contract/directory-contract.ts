import { beforeEach, describe, expect, test } from 'vitest';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS, type Member } from '../../src/domain/studio.ts';
import type { StudioPut } from '../../src/store/port/directory.ts';
import type { Store } from '../../src/store/store.ts';
import { aLeadSource, aMember, anApiKey, aStudio, BY, NOW, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, sourcesIn } from './store-actions.ts';

/** The promises about studios, members and lead sources. */
export function directoryContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created } = actionsOn(() => store);

  describe('the directory', () => {
    test('finds a studio as it was last put', async () => {
      for (const studio of [aStudio(), aStudio({ status: 'suspended' }), aStudio()]) {
        expect(await store.putStudio(studio, BY)).toEqual({ kind: 'put', studio });
        expect(await store.findStudio(STUDIO_ID)).toEqual(studio);
      }
      expect(await store.findStudio('studio-2')).toBeNull();
    });

    test('a put of a studio leaves omitted fields unchanged', async () => {
      await store.putStudio(aStudio({ regionCode: 'DE' }), BY);
      const unchanged = { id: STUDIO_ID, status: undefined, regionCode: undefined };
      const put = (change: Partial<StudioPut>) => store.putStudio({ ...unchanged, ...change }, BY);

      expect(await put({ status: 'suspended' })).toMatchObject({ studio: { regionCode: 'DE' } });
      expect(await put({ regionCode: 'FR' })).toMatchObject({ studio: { status: 'suspended' } });
      expect(await put({})).toMatchObject({ studio: { status: 'suspended', regionCode: 'FR' } });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status: 'suspended', regionCode: 'FR' });
      expect(await put({ regionCode: null })).toMatchObject({ studio: { regionCode: null } });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status: 'suspended', regionCode: null });
    });

    // @proves leads-32
    test('a studio stores enquiries until that is switched off, whatever else is put', async () => {
      const unchanged = { id: STUDIO_ID, status: undefined, regionCode: undefined };
      const put = (change: Partial<StudioPut>) => store.putStudio({ ...unchanged, ...change }, BY);
      expect(await put({ status: 'active' })).toMatchObject({ studio: { keepEnquiries: true } });
      expect(await put({ keepEnquiries: false })).toMatchObject({ studio: { keepEnquiries: false } });
      expect(await put({ status: 'suspended', regionCode: 'DE' })).toMatchObject({ studio: { keepEnquiries: false } });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ keepEnquiries: false });
      expect((await store.listStudios(null, 10)).records).toMatchObject([{ keepEnquiries: false }]);
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ studio: { keepEnquiries: false } });
      expect(await put({ keepEnquiries: true })).toMatchObject({ studio: { keepEnquiries: true } });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ keepEnquiries: true });
    });

    test('a put without a status does not create a studio', async () => {
      const put = { id: STUDIO_ID, status: undefined, regionCode: 'DE' } as const;
      expect(await store.putStudio(put, BY)).toEqual({ kind: 'not-found' });
      expect(await store.findStudio(STUDIO_ID)).toBeNull();
    });

    test('members and sources of an unknown studio are not stored', async () => {
      const source = aLeadSource();

      expect(await store.putMember(aMember(), BY)).toBe('no-studio');
      expect(await store.putLeadSource(source, BY)).toBe('no-studio');

      await store.putStudio(aStudio(), BY);
      expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
      expect(await store.findLeadSource(STUDIO_ID, source.id)).toBeNull();
      expect(await sourcesIn(store, STUDIO_ID)).toEqual([]);
    });

    test('finds a member as it was last put, and only in its studio', async () => {
      await store.putStudio(aStudio(), BY);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      for (const role of ['owner', 'admin', 'staff'] as const) {
        expect(await store.putMember(aMember({ role }), BY)).toBe('put');
        expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember({ role }));
      }
      expect(await store.findMember('studio-2', 'member-1')).toBeNull();
      expect(await store.findMember(STUDIO_ID, 'Member-1')).toBeNull();
    });

    test('removing a member returns it once and removes no other', async () => {
      await store.putStudio(aStudio(), BY);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const others = [aMember({ id: 'member-2' }), aMember({ studioId: 'studio-2' })];
      for (const member of [aMember(), ...others]) await store.putMember(member, BY);

      expect(await store.removeMember(STUDIO_ID, 'member-1', BY)).toEqual(aMember());
      expect(await store.removeMember(STUDIO_ID, 'member-1', BY)).toBeNull();
      expect(await store.removeMember('studio-3', 'member-1', BY)).toBeNull();
      expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
      for (const member of others) expect(await store.findMember(member.studioId, member.id)).toEqual(member);
    });

    test('lists sources by id, as they were last put, and only in their studio', async () => {
      await store.putStudio(aStudio(), BY);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const sources = times(4, () => aLeadSource());
      const theirs = aLeadSource({ studioId: 'studio-2', id: sources[0]?.id as string });
      for (const source of [...sources.toReversed(), theirs]) expect(await store.putLeadSource(source, BY)).toBe('put');
      const disabled = { ...(sources[2] as (typeof sources)[number]), name: 'Old campaign', enabled: false };

      expect(await store.putLeadSource(disabled, BY)).toBe('put');

      expect(await sourcesIn(store, STUDIO_ID)).toEqual(sources.with(2, disabled));
      expect(await sourcesIn(store, 'studio-2')).toEqual([theirs]);
      expect(await sourcesIn(store, 'studio-3')).toEqual([]);
      expect(await store.findLeadSource(STUDIO_ID, disabled.id)).toEqual(disabled);
      expect(await store.findLeadSource('studio-2', disabled.id)).toBeNull();
    });

    test('removing a source returns it once and makes room for another', async () => {
      await store.putStudio(aStudio(), BY);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const sources = times(MAX_LEAD_SOURCES, () => aLeadSource());
      await opened().fill({ sources });
      const [first, ...others] = sources as [LeadSource, ...LeadSource[]];

      expect(await store.removeLeadSource('studio-2', first.id, BY)).toBeNull();
      expect(await store.removeLeadSource(STUDIO_ID, first.id, BY)).toEqual(first);
      expect(await store.removeLeadSource(STUDIO_ID, first.id, BY)).toBeNull();
      expect(await store.findLeadSource(STUDIO_ID, first.id)).toBeNull();
      const latest = aLeadSource();
      expect(await store.putLeadSource(latest, BY)).toBe('put');
      expect(await sourcesIn(store, STUDIO_ID)).toEqual([...others, latest]);
    });

    // @proves limits-8
    test('30 members and 30 sources put at once through two stores are stored up to the limits', async () => {
      const all = [store, await opened().another()];
      const through = (index: number) => all[index % all.length] as Store;
      await store.putStudio(aStudio(), BY);
      await opened().fill({
        members: times(MAX_MEMBERS - 10, (index) => aMember({ id: `there-${index}` })),
        sources: times(MAX_LEAD_SOURCES - 10, () => aLeadSource()),
      });

      const outcomes = await Promise.all([
        ...times(30, (index) => through(index).putMember(aMember({ id: `new-${index}` }), BY)),
        ...times(30, (index) => through(index).putLeadSource(aLeadSource(), BY)),
      ]);

      const written = (part: typeof outcomes) => part.filter((outcome) => outcome === 'put').length;
      expect([written(outcomes.slice(0, 30)), written(outcomes.slice(30))]).toEqual([10, 10]);
      expect(outcomes.filter((outcome) => outcome === 'limit-reached')).toHaveLength(40);
      expect(await sourcesIn(store, STUDIO_ID)).toHaveLength(MAX_LEAD_SOURCES);
    });

    // @proves limits-8
    test('concurrent puts of the same member or source all succeed', async () => {
      const all = [store, await opened().another()];
      await store.putStudio(aStudio(), BY);

      for (const id of ['one', 'other', 'third']) {
        const source = aLeadSource();
        const outcomes = await Promise.all(
          times(20, (index) => {
            const through = all[index % all.length] as Store;
            return index < 10 ? through.putMember(aMember({ id }), BY) : through.putLeadSource(source, BY);
          }),
        );
        expect(new Set(outcomes)).toEqual(new Set(['put']));
      }
    });

    // @proves limits-8
    test('a studio above its limits can change and remove members and sources, but not add any', async () => {
      await store.putStudio(aStudio(), BY);
      const members = times(MAX_MEMBERS + 2, (index) => aMember({ id: `member-${index}` }));
      const sources = times(MAX_LEAD_SOURCES + 2, () => aLeadSource());
      await opened().fill({ members, sources });
      const [member, source] = [members[5] as Member, sources[5] as LeadSource];

      expect(await store.putMember({ ...member, role: 'staff' }, BY)).toBe('put');
      expect(await store.putLeadSource({ ...source, enabled: false }, BY)).toBe('put');
      expect(await store.putMember(aMember({ id: 'another' }), BY)).toBe('limit-reached');
      expect(await store.putLeadSource(aLeadSource(), BY)).toBe('limit-reached');
      expect(await store.removeMember(STUDIO_ID, member.id, BY)).toEqual({ ...member, role: 'staff' });
      expect(await store.removeLeadSource(STUDIO_ID, source.id, BY)).toEqual({ ...source, enabled: false });
      expect(await store.putMember(aMember({ id: 'another' }), BY)).toBe('limit-reached');
    });

    test('lists studios by the bytes of their ids, each once across all pages', async () => {
      const ids = ['-', '0', '9', 'A', 'Z', '_', 'a', 'aA', 'aa', 'z'.repeat(64)];
      for (const id of ids.toReversed()) await store.putStudio(aStudio({ id }), BY);
      await store.putStudio({ id: 'a', status: 'suspended', regionCode: 'DE' }, BY);
      const studios = await Promise.all(ids.map((id) => store.findStudio(id)));

      const first = await store.listStudios(null, 4);
      expect(first).toEqual({ records: studios.slice(0, 4), next: 'A', skipped: 0 });
      const second = await store.listStudios(first.next, 4);
      expect(second).toEqual({ records: studios.slice(4, 8), next: 'aA', skipped: 0 });
      expect(await store.listStudios(second.next, 4)).toEqual({ records: studios.slice(8), next: null, skipped: 0 });
      expect(await store.listStudios('b', 1)).toEqual({ records: studios.slice(9), next: null, skipped: 0 });
    });

    // @proves erasure-6
    test('an ended studio loses its members, sources and retention, but keeps its leads', async () => {
      const ended = { kind: 'ended', members: 0, sources: 0 };
      await store.putStudio({ ...aStudio(), retentionDays: 30 }, BY);
      const [lead, gone] = [await created(), await created()];
      await store.eraseLead({ studioId: STUDIO_ID, leadId: gone.id, ...BY });
      for (const id of ['one', 'two']) await store.putMember(aMember({ id }), BY);
      await store.putLeadSource(aLeadSource(), BY);
      expect(await store.endStudio('studio-none', BY)).toEqual({ kind: 'not-found' });
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual({ kind: 'ended', members: 2, sources: 1 });
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual(ended);

      store = await opened().reopen();
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual(ended);
      expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ status: 'ended' }));
      expect(await store.findMember(STUDIO_ID, 'one')).toBeNull();
      expect((await store.listLeadSources(STUDIO_ID, null, 10)).records).toEqual([]);
      expect(await store.putMember(aMember(), BY)).toBe('ended');
      expect(await store.putLeadSource(aLeadSource(), BY)).toBe('ended');
      for (const more of [{}, { status: 'suspended' as const }, { quotaLimit: 5 }])
        expect(await store.putStudio({ ...aStudio(), ...more }, BY)).toEqual({ kind: 'ended' });
      expect(await store.walkUnerasedLeads(STUDIO_ID, null, 10)).toEqual({ leads: [{ id: lead.id }], next: null });
      expect(await store.walkUnerasedLeads(STUDIO_ID, lead.id, 1)).toEqual({ leads: [], next: gone.id });
      const events = (await store.listAuditEvents(STUDIO_ID, null)).filter(({ to }) => to === 'ended');
      expect(events).toMatchObject([{ action: 'studio-status-changed', from: 'active', memberId: BY.memberId }]);
    });

    // @proves erasure-6
    test('a concurrent put never revives a studio that is being ended', async () => {
      const another = await opened().another();
      for (let round = 0; round < 5; round += 1) {
        const id = `studio-ending-${round}`;
        await store.putStudio(aStudio({ id }), BY);
        await Promise.all([
          store.endStudio(id, BY),
          ...times(4, (index) => another.putStudio(aStudio({ id, quotaLimit: index + 1 }), BY)),
        ]);
        expect(await store.findStudio(id)).toMatchObject({ status: 'ended' });
      }
    });
  });
}

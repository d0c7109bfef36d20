import { inspect } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { examineRecords } from '../../operator/doctor/examine-records.ts';
import { Notes } from '../../operator/doctor/finding.ts';
import { type ApiKey, MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import type { Lead, LeadKeys } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { LeadSource } from '../../src/domain/studio.ts';
import { readDatabase } from '../../src/store/open-store.ts';
import { UnreadableRecord } from '../../src/store/port/faults.ts';
import { NO_NAME, NO_TIME } from '../../src/store/records.ts';
import type { Store } from '../../src/store/store.ts';
import { eraseContact } from '../../src/usecases/erase-leads.ts';
import { everyRecord } from '../../src/usecases/every-record.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aLoggedRequest,
  aMember,
  anApiKey,
  aStudio,
  BY,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore, tryEach } from './opened-store.ts';
import {
  actionsOn,
  aReplacement,
  changesIn,
  correctLead,
  keysIn,
  moveLead,
  sourcesIn,
  toPublicForm,
} from './store-actions.ts';

/** The promises about records that this release cannot read. Tries each damage of the adapter. */
export function unreadableRecordsContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, everyLead, corrected } = actionsOn(() => store);

  // @proves limits-1 mongodb-15 sqlite-9
  describe('unreadable records', () => {
    const [unknownStage, unknownScope] = ['stage', 'scopes'].map((word) =>
      damages.find(({ field }) => field === word),
    ) as [Damage, Damage];
    const each = (kinds: readonly Damage['kind'][], attempt: (damage: Damage, studioId: string) => Promise<void>) =>
      tryEach(opened(), damages, kinds, attempt);
    const listReports = (id: string) => opened().reported.filter((record) => record.id === id);
    const findFault = (call: Promise<unknown>) => call.catch((error) => error);
    const outcomeOfRival = ({ studioId, contact }: Lead) => {
      const rival = aLead({ studioId, contact });
      return store.createLead(rival, keysFor(rival));
    };

    // @proves limits-5
    test('an unreadable lead fails only its own requests, is left out of lists, and keeps its keys', () =>
      each(['lead'], async (damage, studioId) => {
        const leads = times(3, () => aLead({ studioId }));
        const keys = leads.map((lead) => keysFor(lead));
        for (const [index, lead] of leads.entries()) await created(lead, keys[index]);
        const [oldest, bad, newest] = leads as [Lead, Lead, Lead];
        const theirs = await created(aLead({ studioId: `${studioId}-other` }));
        await opened().damage(damage, bad);

        // Concurrent calls, so that one batch reads all leads.
        const [own, ownPublic, ...others] = await Promise.allSettled([
          store.findLead(studioId, bad.id),
          store.findPublicLead(studioId, bad.id),
          store.findLead(theirs.studioId, theirs.id),
          store.findLead(studioId, newest.id),
          store.listLeads(studioId, null, 10),
          store.listPublicLeads(studioId, null, 10).then(({ records, ...page }) => ({
            ...page,
            records: records.map((lead) => JSON.parse(lead)),
          })),
          store.walkLeads(studioId, null, 10),
          store.findLeadsOfContact(studioId, keys[1]?.contactKeys ?? []),
        ]);
        for (const read of [own, ownPublic])
          expect(read).toMatchObject({ status: 'rejected', reason: { constructor: UnreadableRecord, kind: 'lead' } });
        expect(others.map((other) => 'value' in other && other.value)).toEqual([
          theirs,
          newest,
          { records: [newest, oldest], next: null, skipped: 1 },
          { records: [newest, oldest].map(toPublicForm), next: null, skipped: 1 },
          { records: [oldest, newest], next: null, skipped: 1 },
          { leads: [], unreadable: [bad.id] },
        ]);
        expect(listReports(bad.id)[0]).toMatchObject({ kind: 'lead', id: bad.id });
        expect(await store.presenceOfLead(studioId, bad.id)).toBe('present');

        // A replay returns the original data, so it does not depend on the current stage and time.
        const isMutable = /^(?:stage|updated_?at)$/i.test(damage.field);
        const { idempotencyKey, fingerprint } = keys[1] as LeadKeys;
        const repeated = await Promise.allSettled([
          store.createLead({ ...bad, id: newId() }, keys[1] as LeadKeys),
          store.findLeadByIdempotencyKey(studioId, idempotencyKey),
        ]);
        expect(repeated.map((outcome) => ('value' in outcome ? outcome.value : outcome.reason.name))).toEqual(
          isMutable
            ? [
                { kind: 'replayed', lead: bad },
                { lead: bad, fingerprint },
              ]
            : times(2, () => 'UnreadableRecord'),
        );
        const { contact } = aLead();
        await expect(moveLead(store, bad, 'won')).rejects.toThrow(UnreadableRecord);
        await expect(correctLead(store, bad, { contact, note: 'x' })).rejects.toThrow(UnreadableRecord);
        expect(await outcomeOfRival(bad)).toEqual({ kind: 'already-open', leadId: bad.id });
        expect(await store.listAuditEvents(studioId, bad.id)).toEqual([]);
      }));

    // @proves limits-5
    test('a lead can be erased unless its stage or times are unreadable', () =>
      each(
        ['lead', 'creation', 'original', 'uniqueness key', 'pending change', 'lead with events'],
        async (damage, studioId) => {
          const lead = await created(aLead({ studioId }));
          await opened().damage(damage, lead);

          const erasing = store.eraseLead({ studioId, leadId: lead.id, memberId: null, now: NOW });
          if (/^(?:stage|created_?at|updated_?at)$/i.test(damage.field)) {
            await expect(erasing).rejects.toThrow(UnreadableRecord);
            const contactErasure = await eraseContact({ store, clock: () => NOW }, { studioId, contact: lead.contact });
            expect(contactErasure).toEqual({ erasedCount: 0, skippedCount: 1, mayBeIncomplete: true });
            return;
          }
          expect(await erasing).toMatchObject({ kind: 'erased' });
          expect(await store.findLead(studioId, lead.id)).toBeNull();
          for (const former of [undefined, 'former'] as const) {
            const found = await store.findLeadsOfContact(studioId, keysFor(lead).contactKeys, former);
            expect(found).toEqual({ leads: [], unreadable: [] });
          }
          expect((await store.walkErasedLeads(studioId, null, 10)).leads).toMatchObject([{ id: lead.id }]);
          expect((await changesIn(store)).map((change) => change.lead)).toContainEqual(
            expect.objectContaining({ id: lead.id, erasedAt: expect.any(Date) }),
          );
          expect((await store.listAuditEvents(studioId, lead.id))[0]).toMatchObject({ action: 'lead-erased' });
        },
      ));

    // @proves studios-3
    test('an unreadable part of a lead makes its record unreadable, and is reported', () =>
      each(['lead', 'original'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        if (damage.kind === 'original') await correctLead(store, lead, { note: 'once' });
        await opened().damage(damage, lead);

        expect(await store.findLeadRecord(studioId, lead.id)).toBe('unreadable');
        expect(opened().reported.at(-1)).toMatchObject({ kind: 'lead', studioId });
      }));

    test('unreadable creation data makes a replay fail, and the lead stays readable', () =>
      each(['creation', 'original'], async (damage, studioId) => {
        const lead = aLead({ studioId });
        const keys = keysFor(lead);
        await created(lead, keys);
        const now = damage.kind === 'original' ? await corrected(lead, { note: 'once' }) : lead;
        await opened().damage(damage, lead);

        const field = damage.kind === 'original' ? 'original' : 'fingerprint';
        for (const repeat of [
          () => store.createLead({ ...lead, id: newId() }, keys),
          () => store.findLeadByIdempotencyKey(studioId, keys.idempotencyKey),
        ]) {
          expect(await findFault(repeat())).toMatchObject({
            name: 'UnreadableRecord',
            kind: 'lead',
            id: lead.id,
            field,
          });
        }
        expect(await store.findLead(studioId, lead.id)).toEqual(now);
        expect(await everyLead(studioId)).toEqual([now]);
        expect(await outcomeOfRival(lead)).toEqual({ kind: 'already-open', leadId: lead.id });
        const later = await corrected(now, { note: 'twice' });
        expect(await store.findLead(studioId, lead.id)).toEqual(later);
      }));

    test('a lead with unreadable keys stays readable, and its contact stays taken', () =>
      each(['uniqueness key'], async (damage, studioId) => {
        const bad = await created(aLead({ studioId }));
        await opened().damage(damage, bad);

        expect(await outcomeOfRival(bad)).toEqual({ kind: 'already-open', leadId: bad.id });
        expect(await everyLead(studioId)).toEqual([bad]);
        await moveLead(store, bad, 'won');
        expect(await outcomeOfRival(bad)).toMatchObject({ kind: 'created' });
        expect((await store.findLeadsOfContact(studioId, keysFor(bad).contactKeys)).leads).toHaveLength(2);
      }));

    test('an unreadable key has no credential, is listed, keeps its slot and can be revoked', async () => {
      const filled = new Set<boolean>();
      await each(['key'], async (damage, studioId) => {
        if (damage === unknownScope) return;
        const bad = anApiKey({ studioId });
        const expiresAt = plus(bad.expiresAt, 2);
        const isExpiryReadable = !/^expires_?at$/i.test(damage.field);
        // Each of the two cases fills all slots once.
        const isFull = !filled.has(isExpiryReadable);
        filled.add(isExpiryReadable);
        const others = times(isFull ? MAX_LIVE_KEYS - 1 : 1, () => anApiKey({ studioId, expiresAt }));
        const keys = [bad, ...others];
        for (const key of keys) expect(await store.createApiKey(key, NOW)).toBe(true);
        const [good] = others as [ApiKey];
        await opened().damage(damage, bad);

        expect(await store.findCredential(bad.secretSha256)).toBeNull();
        expect(await store.findCredential(good.secretSha256)).toMatchObject({ key: good });
        const listed = await keysIn(store, studioId);
        expect(listed.map(({ id }) => id)).toEqual(keys.map(({ id }) => id).toReversed());
        expect(listed.at(-1)).toMatchObject({ id: bad.id, expiresAt: NO_TIME });
        // A listed key fits into a response, whatever the record contains.
        expect(JSON.stringify(listed.at(-1)).length).toBeLessThan(2000);
        expect(listReports(bad.id)).not.toEqual([]);
        await expect(store.replaceApiKey(aReplacement(bad))).rejects.toThrow(UnreadableRecord);

        const create = (now: Date) => store.createApiKey(anApiKey({ studioId, expiresAt }), now);
        if (isFull) {
          expect(await create(plus(bad.expiresAt, -1))).toBe(false);
          expect(await create(bad.expiresAt)).toBe(isExpiryReadable);
          expect(await create(bad.expiresAt)).toBe(false);
        }

        const revokedAt = plus(NOW, 1);
        expect(await store.revokeApiKey(studioId, bad.id, { ...BY, now: revokedAt })).toMatchObject({
          id: bad.id,
          revokedAt,
        });
        if (isFull) expect(await create(bad.expiresAt)).toBe(!isExpiryReadable);
        expect(await store.listAuditEvents(studioId, null)).toContainEqual(
          expect.objectContaining({ action: 'api-key-revoked', apiKeyId: bad.id }),
        );
      });
    });

    test.each([
      ['name', /^name$/, { name: NO_NAME }],
      ['hint', /^secret_?hint$/i, { secretHint: '' }],
    ])('a key with an unreadable %s is listed with its other fields', async (_, pattern, shown) => {
      await store.putStudio(aStudio(), BY);
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      for (const damage of damages.filter(({ kind, field }) => kind === 'key' && pattern.test(field))) {
        await opened().damage(damage, key);
      }

      expect(await keysIn(store, STUDIO_ID)).toEqual([{ ...key, ...shown, expiresAt: NO_TIME }]);
    });

    test('an unknown scope grants nothing and does not affect the others', async () => {
      await store.putStudio(aStudio(), BY);
      const key = anApiKey({ scopes: ['leads.read'] });
      await store.createApiKey(key, NOW);
      await opened().damage(unknownScope, key);

      expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
      expect(opened().reported).toEqual([]);
    });

    test('an unreadable studio counts as suspended until it is put again', () =>
      each(['studio'], async (damage, id) => {
        const key = anApiKey({ studioId: id });
        await store.createApiKey(key, NOW);
        await opened().damage(damage, { studioId: id, id });

        const suspended = aStudio({ id, status: 'suspended', keepEnquiries: !/^keep_?enquiries$/i.test(damage.field) });
        expect(await store.findStudio(id)).toEqual(suspended);
        expect((await store.findCredential(key.secretSha256))?.studio).toEqual(suspended);
        expect(listReports(id)[0]).toMatchObject({ kind: 'studio', id });

        for (const status of ['active', 'suspended', 'active'] as const) {
          const studio = aStudio({ id, status });
          const put = { ...studio, retentionDays: null };
          expect(await store.putStudio(put, { ...BY, now: plus(NOW, 1) })).toEqual({ kind: 'put', studio });
          expect(await store.findStudio(id)).toEqual(studio);
        }
        expect(await store.findMember(id, 'member-1')).toEqual(aMember({ studioId: id }));
        expect((await store.listAuditEvents(id, null)).filter(({ to }) => to === 'suspended')).toHaveLength(1);
      }));

    test('a studio with unreadable former regions stays readable and can be put', () =>
      each(['region'], async (damage, id) => {
        await store.putStudio({ id, status: 'active', regionCode: 'DE' }, BY);
        await opened().damage(damage, { studioId: id, id });

        expect(await store.findStudio(id)).toMatchObject({ status: 'active', regionCode: 'DE', formerRegions: [null] });
        await store.putStudio({ id, status: 'active', regionCode: 'AT' }, BY);
        const after = await store.findStudio(id);
        expect(after).toMatchObject({ regionCode: 'AT', formerRegions: expect.arrayContaining(['DE', null]) });
      }));

    test('an unreadable member has no role, and can be put and removed', () =>
      each(['member'], async (damage, studioId) => {
        const key = anApiKey({ studioId });
        await store.createApiKey(key, NOW);
        await opened().damage(damage, aMember({ studioId }));

        expect(await store.findMember(studioId, 'member-1')).toBeNull();
        expect(await store.findCredential(key.secretSha256)).toMatchObject({ issuerRole: null });
        expect(listReports('member-1')[0]).toMatchObject({ kind: 'member' });

        await store.putMember(aMember({ studioId }), BY);
        expect(await store.findMember(studioId, 'member-1')).toEqual(aMember({ studioId }));
        await opened().damage(damage, aMember({ studioId }));
        expect(await store.removeMember(studioId, 'member-1', BY)).toBeNull();
        const changes = (await store.listAuditEvents(studioId, null)).flatMap(({ action, from, to }) =>
          action === 'studio-member-changed' ? [[from, to]] : [],
        );
        expect(changes).toEqual([
          ['member-1 unknown', null],
          ['member-1 unknown', 'member-1 owner'],
          [null, 'member-1 owner'],
        ]);
      }));

    test('an unreadable source does not exist until it is put again', () =>
      each(['source'], async (damage, studioId) => {
        const key = anApiKey({ studioId });
        const sources = times(3, () => aLeadSource({ studioId }));
        await store.createApiKey(key, NOW);
        for (const source of sources) await store.putLeadSource(source, BY);
        const [first, bad, last] = sources as [LeadSource, LeadSource, LeadSource];
        await opened().damage(damage, bad);

        expect(await store.findLeadSource(studioId, bad.id)).toBeNull();
        expect(await store.findCredential(key.secretSha256, bad.id)).toMatchObject({ source: null });
        expect(await sourcesIn(store, studioId)).toEqual([first, last]);
        expect(listReports(bad.id)[0]).toMatchObject({ kind: 'lead source' });

        await store.putLeadSource(bad, BY);
        expect(await sourcesIn(store, studioId)).toEqual(sources);
      }));

    test('an unreadable audit event is skipped', () =>
      each(['event'], async (damage, id) => {
        await opened().damage(damage, { studioId: id, id });
        await store.putStudio(aStudio({ id, status: 'suspended' }), { ...BY, now: plus(NOW, 1) });

        expect(await store.listAuditEvents(id, null)).toMatchObject([{ from: 'active', to: 'suspended' }]);
      }));

    // Only stores that keep events in the record itself have such damages.
    test('a record with unreadable events rejects changes permanently and stays as it was', () =>
      each(['lead with events', 'key with events'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        const key = anApiKey({ studioId });
        await store.createApiKey(key, NOW);
        const [record, kind] = damage.kind === 'lead with events' ? [lead, 'lead'] : [key, 'API key'];
        await opened().damage(damage, record);

        const changes =
          record === lead
            ? [() => moveLead(store, lead, 'won'), () => correctLead(store, lead, { note: 'x' })]
            : [() => store.replaceApiKey(aReplacement(key))];
        for (const change of changes) {
          const expected = { name: 'UnreadableRecord', kind, id: record.id, field: damage.field };
          expect(await findFault(change())).toMatchObject(expected);
        }
        expect(await store.findLead(studioId, lead.id)).toEqual(lead);
        expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
      }));

    test('the error about an unreadable record contains none of its data', async () => {
      const lead = await created(aLead({ note: 'calls back after six' }));
      await opened().damage({ ...unknownStage, value: 'between-jobs' }, lead);

      const fault = await store.findLead(STUDIO_ID, lead.id).catch((error) => error);

      expect(fault.message).toBe(`the lead ${lead.id} of studio ${STUDIO_ID} cannot be read: stage is invalid`);
      expect(inspect(fault)).not.toMatch(/between-jobs|calls back|Ada|example\.org/);
    });
  });
}

const KINDS: readonly Damage['kind'][] = [
  'lead',
  'key',
  'studio',
  'member',
  'source',
  'event',
  'consumer',
  'request',
] as const;

/** Whether a record with this damage stays readable, or is an event outside any time range. */
const isHarmless = ({ kind, value }: Damage): boolean => {
  const shown = inspect(value).slice(0, 100);
  return (kind === 'key' && /leads\.export/.test(shown)) || (kind === 'event' && !/studio-sold/.test(shown));
};

/** The promises of `lead-intake doctor --records`. */
export function everyRecordContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  const listNotes = async () => {
    const notes = new Notes('records');
    await examineRecords(notes, opened().databaseUrl, () => {});
    return notes.findings;
  };

  // @proves limits-12
  describe('doctor --records', () => {
    test('doctor --records names every unreadable record without its contents', { timeout: 120_000 }, async () => {
      const { store, damage, databaseUrl } = opened();
      /** Creates a record of a kind unless the studio has one, and returns its id. */
      async function make(kind: Damage['kind'], studioId: string): Promise<string> {
        const lead = aLead({ studioId, displayName: 'Mary Canary' });
        const key = anApiKey({ studioId });
        const source = aLeadSource({ studioId });
        const request = aLoggedRequest({ studioId });
        const name = `consumer-of-${studioId}`;
        if (kind === 'lead') await store.createLead(lead, keysFor(lead));
        // A member is found by its keys.
        if (kind === 'key' || kind === 'member') await store.createApiKey(key, lead.createdAt);
        if (kind === 'source') await store.putLeadSource(source, BY);
        if (kind === 'request') await store.recordRequests([request]);
        if (kind === 'consumer') await store.createConsumer(aConsumer({ name }), BY);
        const ids: Partial<Record<Damage['kind'], string>> = {
          lead: lead.id,
          key: key.id,
          member: key.memberId,
          source: source.id,
          consumer: name,
          request: request.id,
        };
        return ids[kind] ?? studioId;
      }
      const bad = new Set<string>();
      const harmful = damages.filter((each) => !isHarmless(each));
      await tryEach(opened(), harmful, KINDS, async (each, studioId) => {
        const id = await make(each.kind, studioId);
        await damage(each, { studioId, id });
        bad.add(each.kind === 'consumer' ? id : `${studioId}/${id}`);
      });
      await store.putStudio(aStudio(), BY);
      for (const kind of KINDS) await make(kind, STUDIO_ID);

      const found = new Set<string>();
      await readDatabase(
        databaseUrl,
        ({ kind, studioId, id }) => found.add(kind === 'consumer' ? id : `${studioId}/${id}`),
        async (records) => {
          for await (const _ of everyRecord(records));
        },
      );

      expect([...found].toSorted()).toEqual([...bad].toSorted());
      expect(inspect(await listNotes(), { maxStringLength: null })).not.toMatch(/canary|@|xxx/i);
    });

    test('doctor --records counts the unreadable records of a kind and names ten of them', async () => {
      await opened().store.putStudio(aStudio(), BY);
      const leads = times(12, () => aLead());
      await opened().makeLeads(...leads);
      await opened().damage(emptyName(damages), ...leads.slice(1));

      expect(await listNotes()).toEqual([
        {
          what: 'records',
          verdict: 'fault',
          says: expect.stringMatching(/^include 11 leads that cannot be read: (?:[\w-]+\/[\w-]{36}, ){10}…\. Correct/),
        },
      ]);
    });

    test('doctor --records finds nothing while leads are created, closed and erased', async () => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      let isEnding = false;
      const change = async () => {
        while (!isEnding) {
          const lead = aLead();
          await store.createLead(lead, keysFor(lead));
          await moveLead(store, lead, 'won');
          const erasure = { studioId: lead.studioId, leadId: lead.id, memberId: null, now: plus(NOW, 1) };
          await store.eraseLead(erasure);
        }
      };
      const changing = Promise.all(times(4, change));
      const found = [];
      for (let reads = 0; reads < 5; reads += 1) found.push(...(await listNotes()));
      isEnding = true;
      await changing;

      expect(found.map(({ verdict }) => verdict)).toEqual(times(5, () => 'ok'));
    });
  });
}

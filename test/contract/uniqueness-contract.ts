import { beforeEach, describe, expect, test } from 'vitest';
import { type Contact, searchKeys, toContactKeys } from '../../src/domain/contact.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { CreateLeadOutcome } from '../../src/domain/lead-creation.ts';
import type { Studio } from '../../src/domain/studio.ts';
import type { Store } from '../../src/store/store.ts';
import { findContactLeads } from '../../src/usecases/read-leads.ts';
import { aContactKey, aLead, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { contradictionsIn } from '../support/contradictions.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { actionsOn, correctLead, describeThroughStores } from './store-actions.ts';

/** The promises about uniqueness keys, and about the regions that they depend on. */
export function uniquenessContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, corrected, everyLead } = actionsOn(() => store);
  const findHolder = async (...names: readonly string[]) => {
    const { leads: found } = await store.findLeadsOfContact(STUDIO_ID, names.map(aContactKey));
    return found.map(({ id }) => id);
  };

  describe('uniqueness keys', () => {
    test('a creation is refused if it shares any one key with an open lead', async () => {
      const [first, second] = [aLead(), aLead()];
      await created(first, keysFor(first, { contactKeys: [aContactKey('a'), aContactKey('b')] }));

      for (const contactKeys of [
        [aContactKey('a')],
        [aContactKey('b')],
        [aContactKey('c'), aContactKey('b')],
        [aContactKey('a'), aContactKey('c')],
      ]) {
        expect(await store.createLead(second, keysFor(second, { contactKeys }))).toEqual({
          kind: 'already-open',
          leadId: first.id,
        });
      }
      // The refused lead has left no keys.
      await created(second, keysFor(second, { contactKeys: [aContactKey('c')] }));
    });

    test('200 concurrent leads with overlapping keys leave no two open leads with a common key', async () => {
      const another = await opened().another();

      const outcomes = await Promise.all(
        times(200, async (index) => {
          const lead = aLead();
          const contactKeys = [aContactKey(`key-${index % 20}`), aContactKey(`key-${(index + 1) % 20}`)];
          const { kind } = await (index % 2 ? store : another).createLead(lead, keysFor(lead, { contactKeys }));
          return kind === 'created' ? contactKeys : [];
        }),
      );

      const held = outcomes.flat();
      expect(new Set(held).size).toBe(held.length);
      // No two neighbouring keys are both free.
      expect(held.length).toBeGreaterThanOrEqual(14);
    });

    test('a closed lead is found by its former keys and those given when it was closed', async () => {
      const lead = aLead();
      await created(lead, keysFor(lead, { contactKeys: [aContactKey('a'), aContactKey('b')] }));
      await moved(lead, 'contacted', { keys: keysFor(lead, { contactKeys: [aContactKey('d')] }) });
      await moved(lead, 'won', { keys: keysFor(lead, { contactKeys: [aContactKey('b'), aContactKey('c')] }) });
      await moved(lead, 'lost', { keys: keysFor(lead, { contactKeys: [aContactKey('d')] }) });

      for (const name of ['a', 'b', 'c']) expect(await findHolder(name)).toEqual([lead.id]);
      expect(await findHolder('d')).toEqual([]);
      await moved(lead, 'new', { keys: keysFor(lead, { contactKeys: [aContactKey('c')] }) });
      expect(await findHolder('a', 'b')).toEqual([]);
    });
  });

  // Release 1.2 stored keys that were equal for some different contacts.
  // @proves leads-6 others-1
  describe('an open lead of release 1.2', () => {
    const phone = (value: string) => ({ type: 'phone', value }) as const;
    const email = (value: string) => ({ type: 'email', value }) as const;
    const PAIRS = [
      { contact: phone('030 1234567 #5'), other: phone('030 12345675') },
      { contact: phone('030 7654321 #5'), other: phone('030 7654321,5') },
      { contact: phone('(030 7777777) #5'), other: phone('030 77777775') },
      { contact: email('ada@\u0130stanbul.example'), other: email('ada@istanbul.example') },
    ];
    const keysNow = (lead: Lead) => keysFor(lead, toContactKeys(lead.contact, { regionCode: null, formerRegions: [] }));
    const FREE = { regionCode: null, formerRegions: [] };
    const foundBy = async (contact: Contact, former?: 'former') => {
      const { leads } = await findContactLeads(store, STUDIO_ID, contact, former);
      return leads.map(({ id }) => id).toSorted();
    };
    const nothingIsWrong = async () => expect(await contradictionsIn(opened().databaseUrl)).toEqual([]);

    /** Stores a lead with the keys of another contact, as release 1.2 did. */
    async function createdBy12(contact: Contact, other: Contact): Promise<Lead> {
      const lead = aLead({ contact });
      const keys = [...searchKeys(contact, FREE), ...searchKeys(other, FREE)];
      await created(lead, keysFor(lead, { contactKeys: [...new Set(keys)], regionCode: null }));
      await opened().damage(
        damages.find(({ kind, value }) => kind === 'uniqueness key' && value === 2) ?? expect.fail(),
        lead,
      );
      return lead;
    }

    beforeEach(() => store.putStudio(aStudio({ id: STUDIO_ID, regionCode: null }), BY));

    test.each(PAIRS)(
      'a 1.2 lead with $contact.value blocks that contact but not $other.value',
      async ({ contact, other }) => {
        const old = await createdBy12(contact, other);
        await nothingIsWrong();
        const ask = (lead: Lead) => store.createLead(lead, keysNow(lead), { keepsEnquiry: true });

        const outcomes = await Promise.all(times(10, () => ask(aLead({ contact: other, note: 'asks' }))));

        const holder = outcomes.find(({ kind }) => kind === 'created') as { readonly lead: Lead } | undefined;
        const leadId = holder?.lead.id ?? expect.fail('none was created');
        expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome.kind === 'already-open' && outcome.leadId === leadId)).toHaveLength(
          9,
        );
        expect(await ask(aLead({ contact }))).toEqual({ kind: 'already-open', leadId: old.id });
        expect(await store.findLead(STUDIO_ID, old.id)).toEqual(old);
        await nothingIsWrong();
        expect(await foundBy(contact)).toEqual([old.id]);
        expect(await foundBy(other)).toEqual([leadId]);
        expect(await foundBy(other, 'former')).toEqual([leadId]);
      },
    );

    test.each(['(030 1234567) #5', '+49 30 1234567 - #5', '030 1234567 #5 Anna'])(
      "a 1.2 lead whose key includes its extension's digits is found by its contact: %s",
      async (value) => {
        const lead = aLead({ contact: phone(value) });
        const contactKeys = searchKeys(phone(value.replace(/[^+\d]/g, '')), FREE);
        await created(lead, keysFor(lead, { contactKeys }));

        for (const former of [undefined, 'former'] as const)
          expect(await foundBy(phone(value), former)).toEqual([lead.id]);
        expect(await foundBy(phone(value.replace(/#| Anna/g, '')))).toEqual([]);
      },
    );

    test.each(PAIRS)(
      'a 1.2 lead with $contact.value lets others be reopened or corrected with $other.value',
      async ({ contact, other }) => {
        const old = await createdBy12(contact, other);
        const [closed, corrected] = [aLead({ contact: other, stage: 'lost' }), aLead()];
        await created(closed, keysNow(closed));
        await created(corrected);

        await moved(closed, 'new', { keys: keysNow(closed) });
        await nothingIsWrong();
        await moved({ ...closed, stage: 'new' }, 'lost', { keys: keysNow(closed) });
        const keys = keysNow({ ...corrected, contact: other });
        expect(await correctLead(store, corrected, { contact: other }, { keys })).toMatchObject({ kind: 'changed' });
        await nothingIsWrong();
        const again = aLead({ contact });
        expect(await store.createLead(again, keysNow(again))).toEqual({ kind: 'already-open', leadId: old.id });
      },
    );

    test.each(PAIRS)(
      'a 1.2 lead with $contact.value can be closed, reopened and erased beside $other.value',
      async ({ contact, other }) => {
        for (const hasMet of [false, true]) {
          const old = await createdBy12(contact, other);
          const met = aLead({ contact: other });
          if (hasMet) await created(met, keysNow(met));
          const won = await moved(old, 'won', { keys: keysNow(old) });
          expect(await foundBy(contact)).toEqual([old.id]);
          expect(await foundBy(other)).toEqual(hasMet ? [met.id] : []);
          if (!hasMet) {
            await created(met, keysNow(met));
          }
          const open = await moved(won, 'contacted', { keys: keysNow(old) });
          await nothingIsWrong();
          const another = { contact: email('new@example.org') };
          await corrected(open, another, { keys: keysNow({ ...open, ...another }) });
          await nothingIsWrong();
          expect(await foundBy(contact, 'former')).toEqual([old.id]);
          for (const lead of [old, met]) {
            const erasure = { studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: NOW };
            expect(await store.eraseLead(erasure)).toMatchObject({ kind: 'erased' });
          }
          await nothingIsWrong();
          for (const each of [contact, other]) expect(await foundBy(each, 'former')).toEqual([]);
        }
      },
    );
  });

  // @proves leads-6
  describe('a region that changes', () => {
    const NATIONAL = '030 7654321';
    const IN_GERMANY = '+49 30 7654321';
    const phone = (value: string) => ({ type: 'phone', value }) as const;
    const put = (regionCode: Studio['regionCode'] | undefined, through = store) =>
      through.putStudio({ id: STUDIO_ID, status: 'active', regionCode }, { memberId: null, now: NOW });
    const studioNow = async () => (await store.findStudio(STUDIO_ID)) as Studio;
    const formerRegions = async () => new Set((await studioNow()).formerRegions);
    const keysNow = async (lead: Lead) => keysFor(lead, toContactKeys(lead.contact, await studioNow()));
    /** Creates a lead with the keys of the studio's current region. */
    async function createNow(value: string): Promise<CreateLeadOutcome> {
      const lead = aLead({ contact: phone(value) });
      return store.createLead(lead, await keysNow(lead));
    }
    async function createdNow(value: string): Promise<Lead> {
      const outcome = await createNow(value);
      if (outcome.kind !== 'created') throw new Error(`not created: ${outcome.kind}`);
      return outcome.lead;
    }
    const found = async (value: string) => {
      const { leads } = await store.findLeadsOfContact(STUDIO_ID, searchKeys(phone(value), await studioNow()));
      return leads.map(({ id }) => id);
    };

    test.each<[Studio['regionCode'], Studio['regionCode']]>([
      ['DE', null],
      [null, 'DE'],
      ['DE', 'FR'],
    ])('a region change from %s to %s never allows a second open lead for the same text', async (before, after) => {
      await put(before);
      const lead = await createdNow(NATIONAL);

      await put(after);

      for (const text of [NATIONAL, '030/7654321', '(030) 7654321']) {
        expect(await createNow(text)).toEqual({ kind: 'already-open', leadId: lead.id });
      }
    });

    // @proves leads-6
    test('a region change leaves every lead, open or closed, with its data and keys', async () => {
      await put('DE');
      const open = await createdNow(NATIONAL);
      const other = await createdNow('030 1234567');
      const closed = await moved(other, 'lost', { keys: await keysNow(other) });
      const before = await everyLead();

      await put('AT');
      await put(null);

      expect(await everyLead()).toEqual(before);
      for (const [lead, value] of [
        [open, IN_GERMANY],
        [closed, '+49 30 1234567'],
      ] as const) {
        const { contactKeys } = toContactKeys(phone(value), aStudio({ regionCode: 'DE' }));
        expect((await store.findLeadsOfContact(STUDIO_ID, contactKeys)).leads).toEqual([lead]);
      }
    });

    test('a late call with keys of the former region creates no second lead for the same text', async () => {
      await put('DE');
      const late = aLead({ contact: phone(NATIONAL) });
      const lateKeys = await keysNow(late);
      await put(null);
      const { id: leadId } = await createdNow(NATIONAL);

      expect(await store.createLead(late, lateKeys)).toEqual({ kind: 'already-open', leadId });
    });

    // @proves leads-9
    test('a lead is found by the region it was opened in, whatever the region is now', async () => {
      await put('DE');
      const lead = await createdNow(NATIONAL);
      const [abroad, inGermany] = ['+49 30 1234567', '030 1234567'];
      const { id } = await createdNow(abroad);
      for (const region of ['AT', null, 'FR'] as const) {
        await put(region);
        for (const value of [IN_GERMANY, NATIONAL]) expect(await found(value)).toEqual([lead.id]);
        for (const value of [abroad, inGermany]) expect(await found(value)).toEqual([id]);
      }
      await moved(lead, 'lost', { keys: await keysNow(lead) });
      await put('DE');

      // It is also found by the region in which it was closed.
      for (const value of [IN_GERMANY, NATIONAL, '+33 3 07 65 43 21']) expect(await found(value)).toEqual([lead.id]);
      expect(await found('+43 30 7654321')).toEqual([]);
    });

    describeThroughStores('', opened, (through) => {
      // @proves leads-6
      test('every region a studio ever had becomes a former one, even under concurrent changes', async () => {
        await put(undefined);
        expect((await studioNow()).formerRegions).toEqual([]);
        const regions = ['DE', 'AT', 'FR', 'GB', 'US', null, 'ES', 'IT'] as const;

        const seen: Studio[] = [];
        for (let round = 0; round < 6; round += 1) {
          const puts = times(4, (index) => put(regions[(round * 4 + index) % 8], through(index)));
          seen.push(...(await Promise.all(puts)).flatMap((each) => (each.kind === 'put' ? each.studio : [])));
        }

        const { regionCode } = await studioNow();
        const former = await formerRegions();
        // Each put but the last took effect and was replaced.
        for (const region of regions) if (region !== regionCode) expect(former).toContain(region);
        for (const { formerRegions } of seen) expect(former.isSupersetOf(new Set(formerRegions))).toBe(true);
        expect(seen).toHaveLength(24);
        expect((await studioNow()).formerRegions.length).toBe(former.size);
      });
    });

    test('putting the same region or none leaves the former regions unchanged', async () => {
      await put('DE');
      await put('DE');
      await put(undefined);
      expect((await studioNow()).formerRegions).toEqual([]);
      expect(await put(null)).toMatchObject({ studio: { regionCode: null, formerRegions: ['DE'] } });
      await store.putStudio({ id: STUDIO_ID, status: 'suspended', regionCode: undefined, quotaLimit: 5 }, BY);

      expect(await studioNow()).toMatchObject({ regionCode: null, formerRegions: ['DE'], quotaLimit: 5 });
      await put('DE');
      expect(await formerRegions()).toEqual(new Set(['DE', null]));
    });
  });
}

import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_STALE_CALL_MS } from '../../src/domain/claim-renewal.ts';
import { openClaims } from '../../src/domain/claims.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { Studio } from '../../src/domain/studio.ts';
import { type CreateLeadOutcome, type Store, StoreUnavailable } from '../../src/store/store.ts';
import { renewAllClaims } from '../../src/usecases/renew-all-claims.ts';
import { renewClaims } from '../../src/usecases/renew-claims.ts';
import { aClaim, aLead, aStudio, BY, claimsOf, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { completeRenewals, openClaimsIn } from '../support/claims.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, moveLead } from './store-actions.ts';

/** The promises about claims and their renewal after a change of region or contact rule. */
export function claimContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, everyLead } = actionsOn(() => store);

  describe('claims', () => {
    const phone = (value = '030 7654321') => ({ type: 'phone', value }) as const;
    /** Creates a lead with claims by the studio's current region, and returns the outcome. */
    async function createNow(contact: Lead['contact']): Promise<CreateLeadOutcome> {
      const lead = aLead({ contact });
      const studio = (await store.findStudio(STUDIO_ID)) ?? aStudio();
      return store.createLead(lead, claimsOf(lead, openClaims(contact, studio)));
    }
    const clock = (now: Date) => ({ store, clock: () => now });
    const put = (regionCode: Studio['regionCode'], now = NOW) =>
      store.putStudio({ id: STUDIO_ID, status: 'active', regionCode }, { memberId: null, now });
    const renewals = async () => (await store.listClaimRenewals()).map(({ renewal }) => renewal);
    const claimsNow = () => openClaimsIn(store, STUDIO_ID);

    test('one common claim is enough for a refusal, whichever it is', async () => {
      const [first, second] = [aLead(), aLead()];
      await created(first, claimsOf(first, { contactKeys: [aClaim('a'), aClaim('b')] }));

      for (const contactKeys of [
        [aClaim('a')],
        [aClaim('b')],
        [aClaim('c'), aClaim('b')],
        [aClaim('a'), aClaim('c')],
      ]) {
        expect(await store.createLead(second, claimsOf(second, { contactKeys }))).toEqual({
          kind: 'already-open',
          leadId: first.id,
        });
      }
      // The refused lead has left no claims.
      await created(second, claimsOf(second, { contactKeys: [aClaim('c')] }));
    });

    test('of 200 concurrent leads that each share a claim with two others, no two open ones share a claim', async () => {
      const another = await opened().another();

      await Promise.all(
        times(200, (index) => {
          const lead = aLead();
          const contactKeys = [aClaim(`claim-${index % 20}`), aClaim(`claim-${(index + 1) % 20}`)];
          return (index % 2 ? store : another).createLead(lead, claimsOf(lead, { contactKeys }));
        }),
      );

      const claimed = (await claimsNow()).flatMap(({ claims }) => claims.contactKeys);
      expect(new Set(claimed).size).toBe(claimed.length);
      // No two neighbouring claims are both free.
      expect(claimed.length).toBeGreaterThanOrEqual(14);
    });

    test('closing releases every claim, and reopening stores the claims given with it', async () => {
      const first = aLead();
      await created(first, claimsOf(first, { contactKeys: [aClaim('a'), aClaim('b')] }));
      await moved(first, 'won');
      const second = aLead();
      await created(second, claimsOf(second, { contactKeys: [aClaim('b')] }));

      const claims = claimsOf(first, { contactKeys: [aClaim('c'), aClaim('b')] });
      expect(await moveLead(store, first, 'new', { claims })).toEqual({ kind: 'already-open', leadId: second.id });
      await moved(second, 'lost');
      await moved(first, 'new', { claims });

      const [claiming] = await claimsNow();
      expect(claiming).toMatchObject({ id: first.id, claims: { contactKeys: [aClaim('c'), aClaim('b')] } });
    });

    test('a move between open stages keeps the claims', async () => {
      const lead = aLead();
      await created(lead, claimsOf(lead, { contactKeys: [aClaim('a')] }));
      await moved(lead, 'contacted', { claims: claimsOf(lead, { contactKeys: [aClaim('b')] }) });

      expect(await claimsNow()).toMatchObject([{ claims: { contactKeys: [aClaim('a')] } }]);
    });

    test('listed claims include the rule that they were made by', async () => {
      await put('DE');
      await createNow(phone());
      await createNow({ type: 'email', value: 'ada@example.org' });

      const [byPhone, byEmail] = await claimsNow();
      expect(byPhone).toMatchObject({ contact: phone(), claims: openClaims(phone(), aStudio({ regionCode: 'DE' })) });
      expect(byEmail?.claims.contactRule).toEqual({ version: 2, region: 'DE' });
    });

    test.each<[Studio['regionCode'], Studio['regionCode']]>([
      ['DE', null],
      [null, 'DE'],
      ['DE', 'FR'],
    ])(
      'the same text never gets a second open lead when the region changes from %s to %s: before, during and after the renewal',
      async (before, after) => {
        await put(before);
        expect(await createNow(phone())).toMatchObject({ kind: 'created' });

        await put(after);
        for (let now = NOW; ; now = plus(now, MAX_STALE_CALL_MS)) {
          for (const text of ['030 7654321', '030/7654321', '(030) 7654321']) {
            expect(await createNow(phone(text))).toMatchObject({ kind: 'already-open' });
          }
          if ((await renewClaims(clock(now))) === 0) break;
        }

        expect(await renewals()).toEqual([]);
        expect(await createNow(phone())).toMatchObject({ kind: 'already-open' });
        expect(await createNow(phone('030-7654321'))).toMatchObject({ kind: 'already-open' });
        expect((await claimsNow()).map(({ claims }) => claims)).toEqual([
          openClaims(phone(), aStudio({ regionCode: after })),
        ]);
      },
    );

    test('a late call with claims of the old region creates no second lead for the same text', async () => {
      await put('DE');
      const late = aLead({ contact: phone() });
      const lateClaims = claimsOf(late, openClaims(phone(), aStudio({ regionCode: 'DE' })));
      await put(null);
      const now = await completeRenewals(store);
      expect(await createNow(phone())).toMatchObject({ kind: 'created' });
      await completeRenewals(store, now);

      expect(await store.createLead(late, lateClaims)).toMatchObject({ kind: 'already-open' });
    });

    test('after the renewal only the new region applies to a lead', async () => {
      await put('DE');
      await createNow(phone());
      await put(null);
      expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });

      await completeRenewals(store);

      expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'created' });
      expect(await createNow(phone('0307654321'))).toMatchObject({ kind: 'already-open' });
    });

    test('a newly set region makes two spellings of a number equal, from the renewal on', async () => {
      await put(null);
      await createNow(phone());
      await put('DE');
      await renewClaims(clock(NOW));

      expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });
    });

    test('two open leads whose contacts become equal both stay open, are reported, and block further leads', async () => {
      await put(null);
      const [first, second] = [await createNow(phone()), await createNow(phone('+49 30 7654321'))];
      if (first.kind !== 'created' || second.kind !== 'created') throw new Error('not created');
      const reported: string[][] = [];
      await put('DE');

      await renewClaims(clock(NOW), { claimConflict: (_, leadId, holderId) => reported.push([leadId, holderId]) });

      expect(reported).toEqual([[first.lead.id, second.lead.id]]);
      for (const text of ['030 7654321', '+49 30 7654321', '030/7654321']) {
        expect(await createNow(phone(text))).toMatchObject({ kind: 'already-open' });
      }
      await completeRenewals(store);
      await moved(second.lead, 'won');
      expect(await createNow(phone())).toMatchObject({ kind: 'already-open', leadId: first.lead.id });
    });

    test('of two open leads whose contacts became equal, neither blocks a contact that is different now', async () => {
      await put('DE');
      expect(await createNow(phone())).toMatchObject({ kind: 'created' });
      expect(await createNow(phone('+43 30 7654321'))).toMatchObject({ kind: 'created' });
      await put('AT');

      await completeRenewals(store);

      expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'created' });
      expect(await createNow(phone())).toMatchObject({ kind: 'already-open' });
      expect(await createNow(phone('0043 30 7654321'))).toMatchObject({ kind: 'already-open' });
    });

    test('an error in the renewal of one studio is reported and does not stop that of others', async () => {
      await put('DE');
      await createNow(phone());
      await put(null);
      const failing = { id: 'a-studio-before', status: 'active', regionCode: 'DE' } as const;
      await store.putStudio(failing, { memberId: null, now: NOW });
      await store.putStudio({ ...failing, regionCode: null }, { memberId: null, now: NOW });
      const faulty: Store = {
        ...store,
        async listClaims(studioId, ...page) {
          if (studioId === failing.id) throw new StoreUnavailable('the fault');
          return store.listClaims(studioId, ...page);
        },
      };
      const reported: string[] = [];

      const renewing = renewClaims(
        { store: faulty, clock: () => NOW },
        { failed: ({ studio }, error) => reported.push(`${studio.id}: ${(error as Error).message}`) },
      );

      await expect(renewing).rejects.toThrow('the fault');
      expect(reported).toEqual(['a-studio-before: the fault']);
      expect(await renewals()).toMatchObject([{ step: 'first' }, { step: 'second' }]);
    });

    test('all claims can be renewed again, by the first rule too, and even during a renewal', async () => {
      const again = () => renewAllClaims({ store, clock: () => NOW });
      const extension = phone('030 1234567 x200');
      await put('DE');
      await createNow(extension);
      const claims = await claimsNow();

      expect(await again()).toEqual({ started: expect.arrayContaining([STUDIO_ID]), notStarted: [] });

      const first = { version: 1, region: 'DE' };
      expect(await renewals()).toMatchObject([{ step: 'first', since: NOW, after: null, formerRules: [first] }]);
      await renewClaims(clock(NOW));
      // The first rule ignores extensions.
      expect(await createNow(phone('030 1234567'))).toMatchObject({ kind: 'already-open' });

      await put(null);
      await again();
      const formerRules = [first, { version: 2, region: 'DE' }, { version: 1, region: null }];
      expect(await renewals()).toMatchObject([{ step: 'first', formerRules: expect.arrayContaining(formerRules) }]);
      await put('DE');
      await completeRenewals(store);
      expect(await claimsNow()).toEqual(claims);
      expect(await createNow(phone('030 1234567'))).toMatchObject({ kind: 'created' });
    });

    test('an interrupted renewal continues where it stopped, even in another process', async () => {
      await put('DE');
      await Promise.all(times(250, (index) => createNow(phone(`030 ${1_000_000 + index}`))));
      await put(null);
      const interruption = new AbortController();
      let pages = 0;
      const interrupted: Store = {
        ...store,
        async saveClaimRenewal(...renewal) {
          const noted = await store.saveClaimRenewal(...renewal);
          if (++pages === 1) interruption.abort();
          return noted;
        },
      };
      await renewClaims({ store: interrupted, clock: () => NOW }, {}, interruption.signal);
      const [half] = await renewals();
      expect(half).toMatchObject({ step: 'first', after: expect.any(String) });
      const renewedCount = async () =>
        (await claimsNow()).filter(({ claims }) => claims.contactRule.region === null).length;
      expect(await renewedCount()).toBe(100);

      store = await opened().reopen();
      let renewed = 0;
      await renewClaims(clock(NOW), { stepEnded: (_, count) => (renewed += count) });

      expect(renewed).toBe(150);
      expect(await renewedCount()).toBe(250);
      expect(await renewals()).toMatchObject([{ step: 'second', after: null }]);
    });

    test('two concurrent renewals, while leads are created and closed, leave exactly the current claims', async () => {
      await put('DE');
      const outcomes = await Promise.all(times(60, (index) => createNow(phone(`030 ${2_000_000 + index}`))));
      const leads = outcomes.flatMap((outcome) => (outcome.kind === 'created' ? [outcome.lead] : []));
      await put(null);
      const another = await opened().another();
      const creating = Promise.all(times(40, (index) => createNow(phone(`030 ${3_000_000 + index}`))));
      const closing = Promise.all(leads.slice(0, 30).map((lead) => moved(lead, 'lost')));

      let now = NOW;
      while ((await store.listClaimRenewals()).length > 0) {
        await Promise.all([renewClaims(clock(now)), renewClaims({ store: another, clock: () => now })]);
        now = plus(now, MAX_STALE_CALL_MS);
      }
      await Promise.all([creating, closing]);

      const claiming = await claimsNow();
      expect(claiming).toHaveLength(30 + 40);
      for (const { contact, claims } of claiming) {
        expect(claims.contactKeys).toEqual(expect.arrayContaining([...openClaims(contact, aStudio()).contactKeys]));
      }
      for (const lead of leads.slice(0, 30)) expect(await createNow(lead.contact)).toMatchObject({ kind: 'created' });
      for (const lead of leads.slice(30)) expect(await createNow(lead.contact)).toMatchObject({ kind: 'already-open' });
    });

    test('a lead that was closed, reopened or renewed after it was read keeps its claims', async () => {
      const lead = await created();
      const [read] = await claimsNow();
      if (!read) throw new Error('no lead');
      const wanted = { contactKeys: [aClaim('other')], contactRule: { version: 2, region: 'DE' } } as const;
      await moved(lead, 'won');
      expect(await store.renewClaims(STUDIO_ID, read, wanted)).toBeNull();
      expect(await claimsNow()).toEqual([]);
      await created(aLead({ contact: lead.contact }));

      const another = aLead();
      await created(another, claimsOf(another, { contactKeys: [aClaim('other')] }));
      await moved(another, 'won');

      const again = claimsOf(lead, { contactKeys: [aClaim('again')] });
      await moved(lead, 'new', { claims: again });
      expect(await store.renewClaims(STUDIO_ID, read, wanted)).toBeNull();
      const keysOfLead = async () => (await claimsNow()).find(({ id }) => id === lead.id)?.claims.contactKeys;
      expect(await keysOfLead()).toEqual([aClaim('again')]);

      const [reopened] = (await claimsNow()).filter(({ id }) => id === lead.id);
      if (!reopened) throw new Error('no lead');
      await store.renewClaims(STUDIO_ID, reopened, { ...wanted, contactKeys: [aClaim('renewed')] });
      expect(await store.renewClaims(STUDIO_ID, reopened, wanted)).toBeNull();
      expect(await keysOfLead()).toEqual([aClaim('renewed')]);
    });

    test('a region that changes again during a renewal applies in every form', async () => {
      await put('DE');
      await createNow(phone());
      await put('FR');
      await renewClaims(clock(NOW));
      await createNow(phone('+33 30 765 43 21'));
      await put(null, plus(NOW, 1));

      expect((await renewals())[0]?.formerRules.map(({ region }) => region)).toEqual(['DE', 'FR']);
      expect(await createNow(phone('0049 30 7654321'))).toMatchObject({ kind: 'already-open' });

      await put('DE', plus(NOW, 2));
      expect((await renewals())[0]?.formerRules.map(({ region }) => region)).toEqual(['FR', null]);
      await completeRenewals(store);
      expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });
    });

    test('a put without a new region starts no renewal and does not change one in progress', async () => {
      await put('DE');
      expect(await renewals()).toEqual([]);
      await put(null);
      const before = await renewals();
      await store.putStudio({ id: STUDIO_ID, status: 'suspended', regionCode: undefined }, BY);

      expect(await renewals()).toEqual(before);
    });

    test('a renewal changes nothing but the claims', async () => {
      await put('DE');
      await createNow(phone());
      const before = await everyLead();
      await put(null);
      await completeRenewals(store);

      expect(await everyLead()).toEqual(before);
    });
  });
}

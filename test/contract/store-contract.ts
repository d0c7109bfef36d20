import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BOUNDS } from '../../common/rules/field-rules.ts';
import { type ApiKey, LIVE_KEYS_PER_STUDIO } from '../../src/domain/api-key.ts';
import type { AuditEvent } from '../../src/domain/audit.ts';
import { CALLS_OVER_MS } from '../../src/domain/claim-renewal.ts';
import { openClaims } from '../../src/domain/claims.ts';
import type { Lead, LeadClaims, LeadStage } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS, type Member, type Studio } from '../../src/domain/studio.ts';
import { NO_NAME, NO_TIME } from '../../src/store/checked.ts';
import {
  type CreateLeadOutcome,
  type Page,
  type Store,
  StoreUnavailable,
  UnreadableRecord,
} from '../../src/store/store.ts';
import { renewAllClaims } from '../../src/usecases/renew-all-claims.ts';
import { renewClaims } from '../../src/usecases/renew-claims.ts';
import {
  aClaim,
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aSecretHash,
  aStudio,
  BY,
  claimsOf,
  DAY_MS,
  HARD_TEXTS,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { openClaimsIn } from '../support/open-claims.ts';
import { findLeadsContract } from './find-leads-contract.ts';
import { type Damage, type OpenedStore, titleOf } from './opened-store.ts';
import { updateLeadContract } from './update-lead-contract.ts';

const OPEN_STAGES: readonly LeadStage[] = ['new', 'contacted', 'trial_booked', 'trial_attended'];
const CLOSED_STAGES: readonly LeadStage[] = ['won', 'lost'];

/** The first so many code points. */
const cut = (text: string, length: number): string => [...text].slice(0, length).join('');

/** Everything that `src/store/store.ts` promises, held against one adapter. Each test gets a store of its own. */
export function storeContract(name: string, damages: readonly Damage[], open: () => Promise<OpenedStore>): void {
  describe(`store contract: ${name}`, () => {
    let opened: OpenedStore;
    let store: Store;

    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.dispose());

    /** The store after the end of the process, or as another process sees it. */
    const later = () => opened.reopen?.() ?? opened.another();

    async function created(lead: Lead = aLead(), claims = claimsOf(lead)): Promise<Lead> {
      expect(await store.createLead(lead, claims)).toEqual({ kind: 'created', lead });
      return lead;
    }

    async function moved(lead: Lead, stage: LeadStage, { now = NOW, claims = claimsOf(lead) } = {}): Promise<Lead> {
      const { studioId, id: leadId } = lead;
      const outcome = await store.changeLeadStage({
        studioId,
        leadId,
        stage,
        claims,
        memberId: null,
        now,
      });
      if (outcome.kind !== 'changed') throw new Error(`the lead was not moved: ${outcome.kind}`);
      return outcome.lead;
    }

    const leadsIn = async (from: Store, ...page: Parameters<Store['listLeads']>) =>
      (await from.listLeads(...page)).records;
    const sourcesIn = async (from: Store, studioId: string) =>
      (await from.listLeadSources(studioId, null, 2000)).records;
    const everyLead = (studioId = STUDIO_ID) => leadsIn(store, studioId, null, 1000);

    describe('creating leads', () => {
      test('a created lead is found by its id, by its idempotency key and in the listing, as it was given', async () => {
        const lead = aLead({
          contact: { type: 'phone', value: '+49 (0)30 1234567' },
          sourceId: newId(),
          note: 'Calls back after six.',
        });
        const claims = claimsOf(lead);
        await created(lead, claims);

        expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
        expect(await store.findLeadByIdempotencyKey(lead.studioId, claims.idempotencyKey)).toEqual({
          lead,
          fingerprint: claims.fingerprint,
        });
        expect(await everyLead()).toEqual([lead]);
      });

      test('an absent source and note stay absent', async () => {
        const lead = await created(aLead({ sourceId: null, note: null }));

        expect(await store.findLead(lead.studioId, lead.id)).toMatchObject({ sourceId: null, note: null });
      });

      test('times keep their millisecond', async () => {
        const createdAt = new Date('2026-12-31T23:59:59.999Z');
        const lead = await created(aLead({ createdAt }));

        expect((await store.findLead(lead.studioId, lead.id))?.createdAt.getTime()).toBe(createdAt.getTime());
      });

      test('the same key with the same data is a replay of the first lead', async () => {
        const first = aLead();
        const claims = claimsOf(first);
        await created(first, claims);

        const retry = { ...first, id: newId() };

        expect(await store.createLead(retry, claims)).toEqual({ kind: 'replayed', lead: first });
        expect(await everyLead()).toEqual([first]);
      });

      test('the same key with other data is a conflict, and nothing is written', async () => {
        const first = aLead();
        const { idempotencyKey } = claimsOf(first);
        await created(first, claimsOf(first, { idempotencyKey }));

        const other = aLead({ contact: first.contact, note: 'other data' });

        expect(await store.createLead(other, claimsOf(other, { idempotencyKey }))).toEqual({
          kind: 'idempotency-conflict',
        });
        expect(await everyLead()).toEqual([first]);
      });

      test('the same data hashed in another way is a conflict', async () => {
        const first = aLead();
        const claims = claimsOf(first);
        await created(first, claims);

        const fingerprint = { ...claims.fingerprint, version: claims.fingerprint.version + 1 };

        expect(await store.createLead({ ...first, id: newId() }, { ...claims, fingerprint })).toEqual({
          kind: 'idempotency-conflict',
        });
      });

      test('another key for a contact with an open lead names that lead, and nothing is written', async () => {
        const first = await created();
        const second = aLead({ contact: first.contact });

        expect(await store.createLead(second, claimsOf(second))).toEqual({ kind: 'already-open', leadId: first.id });
        expect(await everyLead()).toEqual([first]);
      });

      test('a refused creation leaves its key free for other data', async () => {
        const first = await created();
        const refused = aLead({ contact: first.contact });
        const { idempotencyKey } = claimsOf(refused);
        await store.createLead(refused, claimsOf(refused, { idempotencyKey }));

        expect(await store.findLeadByIdempotencyKey(STUDIO_ID, idempotencyKey)).toBeNull();
        const other = aLead();
        await created(other, claimsOf(other, { idempotencyKey }));
      });

      test('a retry is replayed and not told that its own lead is in the way', async () => {
        const lead = aLead();
        const claims = claimsOf(lead);
        await created(lead, claims);

        // The contact's slot is taken, by the very lead that this key created.
        expect(await store.createLead({ ...lead, id: newId() }, claims)).toMatchObject({ kind: 'replayed' });
      });

      test('a key used with other data is a conflict even when the contact is taken as well', async () => {
        const mine = aLead();
        const { idempotencyKey } = claimsOf(mine);
        await created(mine, claimsOf(mine, { idempotencyKey }));
        const theirs = await created();

        const other = aLead({ contact: theirs.contact });

        expect(await store.createLead(other, claimsOf(other, { idempotencyKey }))).toEqual({
          kind: 'idempotency-conflict',
        });
      });

      test('a replay answers the lead as it is now, also after it was closed and the contact went to another', async () => {
        const lead = aLead();
        const claims = claimsOf(lead);
        await created(lead, claims);
        const won = await moved(lead, 'won');
        await created(aLead({ contact: lead.contact }));

        expect(await store.createLead({ ...lead, id: newId() }, claims)).toEqual({ kind: 'replayed', lead: won });
        expect(await store.findLeadByIdempotencyKey(STUDIO_ID, claims.idempotencyKey)).toMatchObject({ lead: won });
      });

      test('keys and contacts are claimed per studio', async () => {
        const lead = aLead();
        const claims = claimsOf(lead);
        await created(lead, claims);

        await created({ ...lead, id: newId(), studioId: 'studio-2' }, claims);
      });

      test('studios whose ids differ in letter case only are different studios', async () => {
        const lead = aLead({ studioId: 'Studio' });
        const claims = claimsOf(lead);
        await created(lead, claims);

        expect(await store.findLead('studio', lead.id)).toBeNull();
        await created({ ...lead, id: newId(), studioId: 'studio' }, claims);
      });

      test('contacts whose keys differ in letter case only are different contacts', async () => {
        const [a, b] = [aLead(), aLead()];
        await created(a, claimsOf(a, { contactKeys: [aClaim('kEy')] }));

        await created(b, claimsOf(b, { contactKeys: [aClaim('KeY')] }));
      });

      test('an unknown key, an unknown lead and an empty studio are no faults', async () => {
        expect(await store.findLeadByIdempotencyKey(STUDIO_ID, newId())).toBeNull();
        expect(await store.findLead(STUDIO_ID, newId())).toBeNull();
        expect(await everyLead()).toEqual([]);
      });
    });

    describe('leads that are created closed', () => {
      test('claim nothing, stand in nobody’s way, and are found by their contact and their key', async () => {
        const open = await created();
        const closed = aLead({ stage: 'won', contact: open.contact, updatedAt: plus(open.createdAt, 5000) });
        const claims = claimsOf(closed);
        await created(closed, claims);
        await created(aLead({ stage: 'lost', contact: open.contact }));

        expect(await store.findLead(STUDIO_ID, closed.id)).toEqual(closed);
        expect(await store.findLeadsOfContact(STUDIO_ID, claims.contactKeys)).toHaveLength(3);
        expect(await store.createLead(aLead({ stage: 'won', contact: open.contact }), claims)).toMatchObject({
          kind: 'replayed',
          lead: { id: closed.id },
        });
        const rival = aLead({ contact: open.contact });
        expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: open.id });
        await moved(open, 'lost');
        await moved(closed, 'new');
        expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: closed.id });
      });

      test('wait to be told since they were written', async () => {
        const lead = aLead({ createdAt: new Date('2019-05-04T00:00:00Z') });
        await store.createLead(lead, claimsOf(lead), NOW);

        expect(await store.listLeadChanges(1)).toMatchObject([{ lead, since: NOW }]);
      });
    });

    describe('many creations at once', () => {
      const kinds = (outcomes: readonly CreateLeadOutcome[]) =>
        Object.fromEntries(
          Object.entries(Object.groupBy(outcomes, ({ kind }) => kind)).map(([kind, list]) => [kind, list?.length]),
        );

      // Alone, and through a second store on the same data: what one process may keep in mind, two may not.
      describe.each([{ stores: 1 }, { stores: 2 }])('through $stores store(s)', ({ stores }) => {
        let through: (index: number) => Store;

        beforeEach(async () => {
          const all = stores === 1 ? [store] : [store, await opened.another()];
          through = (index) => all[index % all.length] as Store;
        });

        test('200 identical creations make one lead, and all get it', async () => {
          const lead = aLead();
          const claims = claimsOf(lead);

          const outcomes = await Promise.all(
            times(200, (index) => through(index).createLead({ ...lead, id: newId() }, claims)),
          );

          expect(kinds(outcomes)).toEqual({ created: 1, replayed: 199 });
          const [only, ...more] = await everyLead();
          expect(more).toEqual([]);
          expect(outcomes.map((outcome) => 'lead' in outcome && outcome.lead)).toEqual(times(200, () => only));
        });

        test('one key with 50 different bodies makes one lead, the rest are conflicts', async () => {
          const idempotencyKey = newId();

          const outcomes = await Promise.all(
            times(50, (index) => {
              const lead = aLead({ note: `body ${index}` });
              return through(index).createLead(lead, claimsOf(lead, { idempotencyKey }));
            }),
          );

          expect(kinds(outcomes)).toEqual({ created: 1, 'idempotency-conflict': 49 });
          expect(await everyLead()).toEqual(
            outcomes.flatMap((outcome) => (outcome.kind === 'created' ? [outcome.lead] : [])),
          );
        });

        test('200 keys for one contact make one lead, the rest are told which', async () => {
          const { contact } = aLead();

          const outcomes = await Promise.all(
            times(200, (index) => {
              const lead = aLead({ contact });
              return through(index).createLead(lead, claimsOf(lead));
            }),
          );

          expect(kinds(outcomes)).toEqual({ created: 1, 'already-open': 199 });
          const [only, ...more] = await everyLead();
          expect(more).toEqual([]);
          expect(new Set(outcomes.flatMap((outcome) => ('leadId' in outcome ? [outcome.leadId] : [])))).toEqual(
            new Set([only?.id]),
          );
        });

        test('5 keys for one contact, 20 times each: one key gets its lead every time, the others never', async () => {
          const { contact } = aLead();
          const requests = times(5, () => {
            const lead = aLead({ contact });
            return { lead, claims: claimsOf(lead) };
          });

          const outcomes = await Promise.all(
            times(100, (index) => {
              const { lead, claims } = requests[index % 5] as (typeof requests)[number];
              return through(index).createLead({ ...lead, id: newId() }, claims);
            }),
          );

          expect(kinds(outcomes)).toEqual({ created: 1, replayed: 19, 'already-open': 80 });
          expect(await everyLead()).toHaveLength(1);
        });

        test('200 leads that have nothing in common are all made', async () => {
          const leads = times(200, () => aLead());

          const outcomes = await Promise.all(
            leads.map((lead, index) => through(index).createLead(lead, claimsOf(lead))),
          );

          expect(kinds(outcomes)).toEqual({ created: 200 });
          expect(await everyLead()).toEqual(leads.toReversed());
        });

        test('20 closed leads of one contact reopened at once: one opens, the rest are told which', async () => {
          const { contact } = aLead();
          const closed: Lead[] = [];
          for (const lead of times(20, () => aLead({ contact }))) {
            await created(lead);
            closed.push(await moved(lead, 'lost'));
          }

          const outcomes = await Promise.all(
            closed.map(({ studioId, id: leadId, contact }, index) =>
              through(index).changeLeadStage({
                studioId,
                leadId,
                stage: 'new',
                claims: claimsOf(aLead({ contact })),
                memberId: null,
                now: NOW,
              }),
            ),
          );

          const opened = outcomes.filter(({ kind }) => kind === 'changed');
          expect(opened).toHaveLength(1);
          const winner = (await everyLead()).filter(({ stage }) => stage === 'new');
          expect(opened).toEqual([{ kind: 'changed', lead: winner[0] }]);
          expect(outcomes.filter((outcome) => !opened.includes(outcome))).toEqual(
            times(19, () => ({ kind: 'already-open', leadId: winner[0]?.id })),
          );
        });

        test('reopening and creating for one contact at once: one of them has it', async () => {
          const lead = await created();
          const claims = claimsOf(lead);
          await moved(lead, 'lost');

          const outcomes = await Promise.all(
            times(40, (index) => {
              const rival = aLead({ contact: lead.contact });
              return index % 2 === 0
                ? through(index >> 1).createLead(rival, claimsOf(rival))
                : through(index >> 1).changeLeadStage({
                    studioId: lead.studioId,
                    leadId: lead.id,
                    stage: 'new',
                    claims,
                    memberId: null,
                    now: NOW,
                  });
            }),
          );

          const winners = (await everyLead()).filter(({ stage }) => stage === 'new');
          expect(winners).toHaveLength(1);
          expect(outcomes.filter(({ kind }) => kind === 'created' || kind === 'changed')).toMatchObject([
            { lead: { id: winners[0]?.id } },
          ]);
        });

        test('20 moves of one lead at once each get an updatedAt of their own, and the highest stays', async () => {
          const lead = await created();
          const claims = claimsOf(lead);

          const outcomes = await Promise.all(
            times(20, (index) =>
              through(index).changeLeadStage({
                studioId: lead.studioId,
                leadId: lead.id,
                stage: OPEN_STAGES[index % 4] as LeadStage,
                claims,
                memberId: null,
                now: NOW,
              }),
            ),
          );

          const changes = outcomes.flatMap((outcome) => (outcome.kind === 'changed' ? [outcome.lead] : []));
          changes.sort((a, b) => a.updatedAt.getTime() - b.updatedAt.getTime());
          expect(changes.length).toBeGreaterThan(0);
          expect(new Set(changes.map(({ updatedAt }) => updatedAt.getTime())).size).toBe(changes.length);
          expect(await store.findLead(lead.studioId, lead.id)).toEqual(changes.at(-1));
        });
      });
    });

    describe('moving leads', () => {
      const everyMove = [...OPEN_STAGES, ...CLOSED_STAGES].flatMap((from) =>
        [...OPEN_STAGES, ...CLOSED_STAGES].filter((to) => to !== from).map((to) => ({ from, to })),
      );

      test.each(everyMove)('a lead moves from $from to $to, and nothing else of it changes', async ({ from, to }) => {
        const lead = await created(aLead({ sourceId: newId(), note: 'stays' }));
        const before = from === 'new' ? lead : await moved(lead, from);

        const outcome = await store.changeLeadStage({
          studioId: lead.studioId,
          leadId: lead.id,
          stage: to,
          claims: claimsOf(lead),
          memberId: null,
          now: plus(before.updatedAt, 5),
        });

        const expected = { ...lead, stage: to, updatedAt: plus(before.updatedAt, 5) };
        expect(outcome).toEqual({ kind: 'changed', lead: expected });
        expect(await store.findLead(lead.studioId, lead.id)).toEqual(expected);
      });

      test.each([...OPEN_STAGES, ...CLOSED_STAGES])(
        'moving a lead that is %s to where it is writes nothing',
        async (stage) => {
          const lead = await created();
          const before = stage === 'new' ? lead : await moved(lead, stage);

          const outcome = await store.changeLeadStage({
            studioId: lead.studioId,
            leadId: lead.id,
            stage,
            claims: claimsOf(lead),
            memberId: null,
            now: plus(before.updatedAt, DAY_MS),
          });

          expect(outcome).toEqual({ kind: 'unchanged', lead: before });
          expect(await store.findLead(lead.studioId, lead.id)).toEqual(before);
        },
      );

      test.each([
        { clock: 'went on', ahead: 1000, grows: 1000 },
        { clock: 'stood still', ahead: 0, grows: 1 },
        { clock: 'went back', ahead: -DAY_MS, grows: 1 },
      ])('updatedAt grows when the clock $clock', async ({ ahead, grows }) => {
        const lead = await created();

        const contacted = await moved(lead, 'contacted', { now: plus(lead.updatedAt, ahead) });

        expect(contacted.updatedAt).toEqual(plus(lead.updatedAt, grows));
        expect((await store.findLead(lead.studioId, lead.id))?.updatedAt).toEqual(contacted.updatedAt);
      });

      test.each(CLOSED_STAGES)('a lead that is %s frees its contact', async (stage) => {
        const first = await created();
        await moved(first, stage);

        const second = await created(aLead({ contact: first.contact }));

        expect((await everyLead()).map(({ id, stage }) => ({ id, stage }))).toEqual([
          { id: second.id, stage: 'new' },
          { id: first.id, stage },
        ]);
      });

      test.each(OPEN_STAGES)('a lead that is %s keeps its contact', async (stage) => {
        const first = await created();
        if (stage !== 'new') await moved(first, stage);

        const second = aLead({ contact: first.contact });

        expect(await store.createLead(second, claimsOf(second))).toEqual({ kind: 'already-open', leadId: first.id });
      });

      test('a contact may have any number of closed leads', async () => {
        const { contact } = aLead();
        for (const stage of ['won', 'lost', 'won', 'lost'] as const) {
          await moved(await created(aLead({ contact })), stage);
        }

        await created(aLead({ contact }));
        expect(await everyLead()).toHaveLength(5);
      });

      test('a closed lead that moves to the other closed stage leaves its contact to the lead that has it', async () => {
        const first = await created();
        await moved(first, 'won');
        const second = await created(aLead({ contact: first.contact }));

        await moved(first, 'lost');

        const third = aLead({ contact: first.contact });
        expect(await store.createLead(third, claimsOf(third))).toEqual({ kind: 'already-open', leadId: second.id });
      });

      test('a reopened lead takes its contact again', async () => {
        const first = await created();
        await moved(first, 'lost');
        await moved(first, 'contacted');

        const second = aLead({ contact: first.contact });

        expect(await store.createLead(second, claimsOf(second))).toEqual({ kind: 'already-open', leadId: first.id });
      });

      test('a reopened lead takes the contact as it is compared now', async () => {
        const first = await created();
        await moved(first, 'lost');
        await moved(first, 'new', { claims: claimsOf(first, { contactKeys: [aClaim('compared-otherwise')] }) });

        const second = aLead();

        expect(
          await store.createLead(second, claimsOf(second, { contactKeys: [aClaim('compared-otherwise')] })),
        ).toEqual({
          kind: 'already-open',
          leadId: first.id,
        });
        await created(aLead({ contact: first.contact }));
      });

      test.each(OPEN_STAGES)(
        'reopening to %s into a taken contact is refused, and nothing is written',
        async (stage) => {
          const first = await created();
          const closed = await moved(first, 'lost');
          const second = await created(aLead({ contact: first.contact }));

          const outcome = await store.changeLeadStage({
            studioId: first.studioId,
            leadId: first.id,
            stage,
            claims: claimsOf(first),
            memberId: null,
            now: plus(closed.updatedAt, DAY_MS),
          });

          expect(outcome).toEqual({ kind: 'already-open', leadId: second.id });
          expect(await everyLead()).toEqual([second, closed]);
          // The contact is still the second lead's: freeing it there frees it for the first.
          await moved(second, 'won');
          await moved(first, stage);
        },
      );

      test("an unknown lead and another studio's lead are not found, and nothing is written", async () => {
        const lead = await created();
        const move = { stage: 'won', claims: claimsOf(lead), memberId: null, now: NOW } as const;

        expect(await store.changeLeadStage({ ...move, studioId: STUDIO_ID, leadId: newId() })).toEqual({
          kind: 'not-found',
        });
        expect(await store.changeLeadStage({ ...move, studioId: 'studio-2', leadId: lead.id })).toEqual({
          kind: 'not-found',
        });
        expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
      });
    });

    updateLeadContract(
      damages.map((damage) => ({ ...damage, title: titleOf(damage) })),
      () => opened,
    );

    findLeadsContract(damages, () => opened);

    describe('claims', () => {
      const phone = (value = '030 7654321') => ({ type: 'phone', value }) as const;
      /** Creates a lead as it would be by the studio as it is now, and gives what became of it. */
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
      /** Takes all steps of a renewal, each when it may begin. */
      async function renewAll(from = NOW): Promise<Date> {
        let now = from;
        while ((await renewClaims(clock(now))) > 0) now = plus(now, CALLS_OVER_MS);
        return now;
      }

      test('one claim in common is enough to stand in the way, whichever it is', async () => {
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
        // What was refused has left none of its claims.
        await created(second, claimsOf(second, { contactKeys: [aClaim('c')] }));
      });

      test('200 leads at once of which each has a claim in common with two others: none has one with another that is open', async () => {
        const another = await opened.another();

        await Promise.all(
          times(200, (index) => {
            const lead = aLead();
            const contactKeys = [aClaim(`claim-${index % 20}`), aClaim(`claim-${(index + 1) % 20}`)];
            return (index % 2 ? store : another).createLead(lead, claimsOf(lead, { contactKeys }));
          }),
        );

        const claimed = (await claimsNow()).flatMap(({ claims }) => claims.contactKeys);
        expect(new Set(claimed).size).toBe(claimed.length);
        // No two neighbours are both free.
        expect(claimed.length).toBeGreaterThanOrEqual(14);
      });

      test('closing frees every claim, and opening again takes those that are given then', async () => {
        const first = aLead();
        await created(first, claimsOf(first, { contactKeys: [aClaim('a'), aClaim('b')] }));
        await moved(first, 'won');
        const second = aLead();
        await created(second, claimsOf(second, { contactKeys: [aClaim('b')] }));

        const reopening = { studioId: STUDIO_ID, leadId: first.id, stage: 'new', memberId: null, now: NOW } as const;
        const claims = claimsOf(first, { contactKeys: [aClaim('c'), aClaim('b')] });
        expect(await store.changeLeadStage({ ...reopening, claims })).toEqual({
          kind: 'already-open',
          leadId: second.id,
        });
        await moved(second, 'lost');
        expect(await store.changeLeadStage({ ...reopening, claims })).toMatchObject({ kind: 'changed' });

        const [claiming] = await claimsNow();
        expect(claiming).toMatchObject({ id: first.id, claims: { contactKeys: [aClaim('c'), aClaim('b')] } });
      });

      test('a move that leaves a lead open leaves its claims', async () => {
        const lead = aLead();
        await created(lead, claimsOf(lead, { contactKeys: [aClaim('a')] }));
        await moved(lead, 'contacted', { claims: claimsOf(lead, { contactKeys: [aClaim('b')] }) });

        expect(await claimsNow()).toMatchObject([{ claims: { contactKeys: [aClaim('a')] } }]);
      });

      test('a lead tells what it claims, and by which rule', async () => {
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
        'the same text gets no second open lead when the region changes from %s to %s: before, while and after claims are renewed',
        async (before, after) => {
          await put(before);
          expect(await createNow(phone())).toMatchObject({ kind: 'created' });

          await put(after);
          for (let now = NOW; ; now = plus(now, CALLS_OVER_MS)) {
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

      test('who has not heard of the new region creates no second lead of the same text, however late', async () => {
        await put('DE');
        const late = aLead({ contact: phone() });
        const lateClaims = claimsOf(late, openClaims(phone(), aStudio({ regionCode: 'DE' })));
        await put(null);
        const now = await renewAll();
        expect(await createNow(phone())).toMatchObject({ kind: 'created' });
        await renewAll(now);

        expect(await store.createLead(late, lateClaims)).toMatchObject({ kind: 'already-open' });
      });

      test('after its turn a lead is held to by the new region alone', async () => {
        await put('DE');
        await createNow(phone());
        await put(null);
        expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });

        await renewAll();

        expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'created' });
        expect(await createNow(phone('0307654321'))).toMatchObject({ kind: 'already-open' });
      });

      test('a region that becomes known unites what was typed in two ways, from the renewal on', async () => {
        await put(null);
        await createNow(phone());
        await put('DE');
        await renewClaims(clock(NOW));

        expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });
      });

      test('two open leads that become one contact both stay, are told, and hold others off', async () => {
        await put(null);
        const [first, second] = [await createNow(phone()), await createNow(phone('+49 30 7654321'))];
        if (first.kind !== 'created' || second.kind !== 'created') throw new Error('not created');
        const told: string[][] = [];
        await put('DE');

        await renewClaims(clock(NOW), { leadInTheWay: (_, leadId, holderId) => told.push([leadId, holderId]) });

        expect(told).toEqual([[first.lead.id, second.lead.id]]);
        for (const text of ['030 7654321', '+49 30 7654321', '030/7654321']) {
          expect(await createNow(phone(text))).toMatchObject({ kind: 'already-open' });
        }
        await renewAll();
        await moved(second.lead, 'won');
        expect(await createNow(phone())).toMatchObject({ kind: 'already-open', leadId: first.lead.id });
      });

      test('of two open leads that became one contact, neither keeps anybody off who is another by now', async () => {
        await put('DE');
        expect(await createNow(phone())).toMatchObject({ kind: 'created' });
        expect(await createNow(phone('+43 30 7654321'))).toMatchObject({ kind: 'created' });
        await put('AT');

        await renewAll();

        expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'created' });
        expect(await createNow(phone())).toMatchObject({ kind: 'already-open' });
        expect(await createNow(phone('0043 30 7654321'))).toMatchObject({ kind: 'already-open' });
      });

      test('what keeps the claims of one studio from being made anew keeps no other’s, and is told', async () => {
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
        const told: string[] = [];

        const renewing = renewClaims(
          { store: faulty, clock: () => NOW },
          { failed: ({ studio }, error) => told.push(`${studio.id}: ${(error as Error).message}`) },
        );

        await expect(renewing).rejects.toThrow('the fault');
        expect(told).toEqual(['a-studio-before: the fault']);
        expect(await renewals()).toMatchObject([{ step: 'first' }, { step: 'second' }]);
      });

      test('all can be made anew from the beginning, by the first rule, too; also those of which that is under way', async () => {
        const again = () => renewAllClaims({ store, clock: () => NOW });
        const extension = phone('030 1234567 x200');
        await put('DE');
        await createNow(extension);
        const claims = await claimsNow();

        expect(await again()).toEqual({ begun: expect.arrayContaining([STUDIO_ID]), left: [] });

        const first = { version: 1, region: 'DE' };
        expect(await renewals()).toMatchObject([{ step: 'first', since: NOW, after: null, formerRules: [first] }]);
        await renewClaims(clock(NOW));
        // By the first rule an extension is none of the number.
        expect(await createNow(phone('030 1234567'))).toMatchObject({ kind: 'already-open' });

        await put(null);
        await again();
        const formerRules = [first, { version: 2, region: 'DE' }, { version: 1, region: null }];
        expect(await renewals()).toMatchObject([{ step: 'first', formerRules: expect.arrayContaining(formerRules) }]);
        await put('DE');
        await renewAll();
        expect(await claimsNow()).toEqual(claims);
        expect(await createNow(phone('030 1234567'))).toMatchObject({ kind: 'created' });
      });

      test('a renewal that is broken off goes on where it was, also in another process', async () => {
        await put('DE');
        for (const index of times(250, (each) => each)) await createNow(phone(`030 ${1_000_000 + index}`));
        await put(null);
        const breakOff = new AbortController();
        let pages = 0;
        const brokenOff: Store = {
          ...store,
          async noteClaimRenewal(...renewal) {
            const noted = await store.noteClaimRenewal(...renewal);
            if (++pages === 1) breakOff.abort();
            return noted;
          },
        };
        await renewClaims({ store: brokenOff, clock: () => NOW }, {}, breakOff.signal);
        const [half] = await renewals();
        expect(half).toMatchObject({ step: 'first', after: expect.any(String) });
        const isRenewed = async () =>
          (await claimsNow()).filter(({ claims }) => claims.contactRule.region === null).length;
        expect(await isRenewed()).toBe(100);

        store = await later();
        let renewed = 0;
        await renewClaims(clock(NOW), { stepEnded: (_, count) => (renewed += count) });

        expect(renewed).toBe(150);
        expect(await isRenewed()).toBe(250);
        expect(await renewals()).toMatchObject([{ step: 'second', after: null }]);
      });

      test('two processes that renew at once, with leads that come and go, leave the claims of now and no others', async () => {
        await put('DE');
        const leads: Lead[] = [];
        for (const index of times(60, (each) => each)) {
          const outcome = await createNow(phone(`030 ${2_000_000 + index}`));
          if (outcome.kind === 'created') leads.push(outcome.lead);
        }
        await put(null);
        const another = await opened.another();
        const coming = Promise.all(times(40, (index) => createNow(phone(`030 ${3_000_000 + index}`))));
        const going = Promise.all(leads.slice(0, 30).map((lead) => moved(lead, 'lost')));

        let now = NOW;
        while ((await store.listClaimRenewals()).length > 0) {
          await Promise.all([renewClaims(clock(now)), renewClaims({ store: another, clock: () => now })]);
          now = plus(now, CALLS_OVER_MS);
        }
        await Promise.all([coming, going]);

        const claiming = await claimsNow();
        expect(claiming).toHaveLength(30 + 40);
        for (const { contact, claims } of claiming) {
          expect(claims.contactKeys).toEqual(expect.arrayContaining([...openClaims(contact, aStudio()).contactKeys]));
        }
        for (const lead of leads.slice(0, 30)) expect(await createNow(lead.contact)).toMatchObject({ kind: 'created' });
        for (const lead of leads.slice(30))
          expect(await createNow(lead.contact)).toMatchObject({ kind: 'already-open' });
      });

      test('a lead that was closed, opened again or renewed since it was read keeps what it has', async () => {
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

      test('a region that changes and changes back, or on, while claims are renewed is held to in every form', async () => {
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
        await renewAll();
        expect(await createNow(phone('+49 30 7654321'))).toMatchObject({ kind: 'already-open' });
      });

      test('a put that changes no region begins no renewal, and leaves one that is under way', async () => {
        await put('DE');
        expect(await renewals()).toEqual([]);
        await put(null);
        const before = await renewals();
        await store.putStudio({ id: STUDIO_ID, status: 'suspended', regionCode: undefined }, BY);

        expect(await renewals()).toEqual(before);
      });

      test('nothing of a lead but its claims changes', async () => {
        await put('DE');
        await createNow(phone());
        const before = await everyLead();
        await put(null);
        await renewAll();

        expect(await everyLead()).toEqual(before);
      });
    });

    describe('listing leads', () => {
      test('leads come highest id first, whatever the order they were created in', async () => {
        const leads = times(9, () => aLead());
        const shuffled = [4, 0, 8, 2, 6, 1, 7, 3, 5].map((index) => leads[index] as Lead);
        for (const lead of shuffled) await created(lead);

        expect(await everyLead()).toEqual(leads.toReversed());
      });

      test('ids of every kind have their place, the highest and the lowest too', async () => {
        const ids = [
          'ffffffff-ffff-ffff-ffff-ffffffffffff',
          'fedcba98-7654-4321-8fed-cba987654321',
          '9a000000-0000-1000-8000-000000000000',
          '0a000000-0000-8000-b000-000000000000',
          '00000000-0000-0000-0000-000000000000',
        ];
        for (const id of ids.toReversed()) await created(aLead({ id, createdAt: NOW }));

        expect((await everyLead()).map(({ id }) => id)).toEqual(ids);
        expect((await leadsIn(store, STUDIO_ID, ids[0] as string, 10)).map(({ id }) => id)).toEqual(ids.slice(1));
        expect(await leadsIn(store, STUDIO_ID, ids[4] as string, 10)).toEqual([]);
      });

      test('there are never more than the limit, and the pages make the whole', async () => {
        const leads = times(10, () => aLead());
        for (const lead of leads) await created(lead);
        const newestFirst = leads.toReversed();

        const first = await leadsIn(store, STUDIO_ID, null, 4);
        const second = await leadsIn(store, STUDIO_ID, first.at(-1)?.id as string, 4);
        const third = await leadsIn(store, STUDIO_ID, second.at(-1)?.id as string, 4);

        expect([first, second, third]).toEqual([
          newestFirst.slice(0, 4),
          newestFirst.slice(4, 8),
          newestFirst.slice(8),
        ]);
      });

      test('a page may follow an id that no lead has', async () => {
        const [older, between, newer] = [aLead(), newId(), aLead()];
        await created(older);
        await created(newer);

        expect(await leadsIn(store, STUDIO_ID, between, 10)).toEqual([older]);
      });

      test('a lead stays where it is when it moves to another stage', async () => {
        const leads = times(3, () => aLead());
        for (const lead of leads) await created(lead);
        const won = await moved(leads[1] as Lead, 'won');

        expect(await everyLead()).toEqual([leads[2], won, leads[0]]);
      });

      test("another studio's leads are never seen", async () => {
        const mine = await created(aLead());
        const claims = claimsOf(mine);
        const theirs = await created(aLead({ studioId: 'studio-2' }), claims);
        const latest = await created(aLead());

        expect(await everyLead()).toEqual([latest, mine]);
        expect(await leadsIn(store, STUDIO_ID, theirs.id, 10)).toEqual([mine]);
        expect(await everyLead('studio-2')).toEqual([theirs]);
        expect(await everyLead('studio-3')).toEqual([]);
        expect(await store.findLead(STUDIO_ID, theirs.id)).toBeNull();
        expect(await store.findLead('studio-2', mine.id)).toBeNull();
        expect(await store.findLeadByIdempotencyKey(STUDIO_ID, claims.idempotencyKey)).toBeNull();
      });
    });

    describe('walking through leads', () => {
      /** All leads of a studio, page after page. */
      async function walked(limit: number, studioId = STUDIO_ID): Promise<Lead[]> {
        const all: Lead[] = [];
        for (let after: string | null = null; ; ) {
          const { records, next }: Page<Lead> = await store.walkLeads(studioId, after, limit);
          expect(records.length).toBeLessThanOrEqual(limit);
          all.push(...records);
          if (next === null) return all;
          after = next;
        }
      }

      test('leads come lowest id first, whatever the order they were created in, and the pages make the whole', async () => {
        const leads = times(10, () => aLead());
        for (const index of [4, 0, 8, 2, 6, 9, 1, 7, 3, 5]) await created(leads[index] as Lead);

        for (const limit of [1, 3, 5, 9, 10, 11]) expect(await walked(limit)).toEqual(leads);
      });

      test('ids of every kind have their place, the highest and the lowest too', async () => {
        const ids = [
          '00000000-0000-0000-0000-000000000000',
          '0a000000-0000-8000-b000-000000000000',
          '9a000000-0000-1000-8000-000000000000',
          'fedcba98-7654-4321-8fed-cba987654321',
          'ffffffff-ffff-ffff-ffff-ffffffffffff',
        ];
        for (const id of ids.toReversed()) await created(aLead({ id, createdAt: NOW }));

        expect((await walked(2)).map(({ id }) => id)).toEqual(ids);
        expect(await store.walkLeads(STUDIO_ID, ids[4] as string, 10)).toEqual({ records: [], next: null });
      });

      test('a page may follow an id that no lead has', async () => {
        const [older, between, newer] = [aLead(), newId(), aLead()];
        await created(older);
        await created(newer);

        expect(await store.walkLeads(STUDIO_ID, between, 10)).toEqual({ records: [newer], next: null });
      });

      test('leads that are created and moved meanwhile neither shift nor double those that were there', async () => {
        const leads = times(6, () => aLead());
        for (const lead of leads) await created(lead);

        const first = await store.walkLeads(STUDIO_ID, null, 3);
        const [seen, , , , late] = leads as [Lead, Lead, Lead, Lead, Lead];
        await moved(seen, 'won');
        const won = await moved(late, 'won');
        const latest = await created();
        const rest = await store.walkLeads(STUDIO_ID, first.next, 10);

        expect(first.records).toEqual(leads.slice(0, 3));
        expect(rest).toEqual({ records: [leads[3], won, leads[5], latest], next: null });
      });

      test("another studio's leads are never seen, and a studio without leads has none", async () => {
        // One whose leads stand before, and one whose leads stand behind.
        const others = ['studio-0', 'studio-2'];
        const mine = await created();
        for (const studioId of others) await created(aLead({ studioId }));
        const latest = await created();

        expect(await walked(1)).toEqual([mine, latest]);
        expect(await walked(10, 'studio-3')).toEqual([]);
      });
    });

    describe('text', () => {
      const longest = { astral: '🦉'.repeat(2000), 'three bytes each': '語'.repeat(2000) };

      test.each(Object.entries({ ...HARD_TEXTS, ...longest }))('%s: stored and answered unchanged', async (_, text) => {
        const [name, value] = [cut(text, BOUNDS.name.max), cut(text, BOUNDS.phone.max)];
        const lead = await created(aLead({ displayName: name, contact: { type: 'phone', value }, note: text }));
        const source = aLeadSource({ name });
        const key = anApiKey({ name });
        await store.putStudio(aStudio(), BY);
        await store.putLeadSource(source);
        await store.createApiKey(key, NOW);

        const reopened = await later();

        expect(await reopened.findLead(lead.studioId, lead.id)).toEqual(lead);
        expect(await reopened.findLeadSource(source.studioId, source.id)).toEqual(source);
        expect(await reopened.listApiKeys(key.studioId)).toEqual([key]);
      });
    });

    describe('api keys', () => {
      beforeEach(async () => {
        await store.putStudio(aStudio(), BY);
        await store.putMember(aMember());
      });

      async function issued(key: ApiKey = anApiKey(), now = NOW): Promise<ApiKey> {
        expect(await store.createApiKey(key, now)).toBe(true);
        return key;
      }

      async function issuedToTheLimit(overrides: Partial<ApiKey> = {}): Promise<ApiKey[]> {
        const keys: ApiKey[] = [];
        for (const key of times(LIVE_KEYS_PER_STUDIO, () => anApiKey(overrides))) keys.push(await issued(key));
        return keys;
      }

      const replacement = (key: ApiKey, overrides: { expiresAt?: Date; now?: Date; memberId?: string } = {}) => ({
        studioId: key.studioId,
        keyId: key.id,
        memberId: key.memberId,
        secretSha256: aSecretHash(),
        secretHint: 'wxyz',
        expiresAt: null,
        now: NOW,
        ...overrides,
      });

      test('a created key is found by its secret and in the listing, as it was given', async () => {
        const key = await issued(anApiKey({ scopes: ['leads.read'] }));

        expect(await store.findCredential(key.secretSha256)).toEqual({
          key,
          studio: aStudio(),
          issuerRole: 'owner',
          source: null,
        });
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
      });

      test("a source of the key's studio is found together with the key, as it is now, and no other studio's", async () => {
        const { secretSha256 } = await issued();
        const source = aLeadSource();
        const foreign = aLeadSource({ studioId: 'studio-2', id: newId() });
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        for (const each of [source, foreign]) await store.putLeadSource(each);
        const found = async ({ id }: { id: string }) => (await store.findCredential(secretSha256, id))?.source;

        expect(await found(source)).toEqual(source);
        expect(await found(foreign)).toBeNull();
        expect(await found({ id: newId() })).toBeNull();

        await store.putLeadSource({ ...source, enabled: false });
        expect(await found(source)).toEqual({ ...source, enabled: false });
      });

      test('an unknown secret opens nothing', async () => {
        await issued();

        expect(await store.findCredential(aSecretHash())).toBeNull();
      });

      test("keys come highest id first, and another studio's are never seen", async () => {
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const keys = times(3, () => anApiKey());
        for (const key of [keys[1], keys[0], keys[2]]) await issued(key);
        const theirs = await issued(anApiKey({ studioId: 'studio-2' }));

        expect(await store.listApiKeys(STUDIO_ID)).toEqual(keys.toReversed());
        expect(await store.listApiKeys('studio-2')).toEqual([theirs]);
        expect(await store.listApiKeys('studio-3')).toEqual([]);
      });

      describe.each([{ stores: 1 }, { stores: 2 }])('through $stores store(s)', ({ stores }) => {
        let through: (index: number) => Store;

        beforeEach(async () => {
          const all = stores === 1 ? [store] : [store, await opened.another()];
          through = (index) => all[index % all.length] as Store;
        });

        test('of 30 keys asked for at once, 20 are written', async () => {
          const keys = times(30, () => anApiKey());

          const written = await Promise.all(keys.map((key, index) => through(index).createApiKey(key, NOW)));

          expect(written.filter(Boolean)).toHaveLength(20);
          expect(await store.listApiKeys(STUDIO_ID)).toEqual(keys.filter((_, index) => written[index]).toReversed());
        });

        test('of 30 expired keys replaced at once, 20 come back to life', async () => {
          const keys: ApiKey[] = [];
          for (const batch of [0, 1]) {
            const expiresAt = plus(NOW, batch + 1);
            for (const key of times(15, () => anApiKey({ expiresAt }))) keys.push(await issued(key, plus(NOW, batch)));
          }

          const outcomes = await Promise.all(
            keys.map((key, index) =>
              through(index).replaceApiKey(replacement(key, { now: plus(NOW, 2), expiresAt: plus(NOW, DAY_MS) })),
            ),
          );

          expect(outcomes.filter(({ kind }) => kind === 'replaced')).toHaveLength(20);
          expect(outcomes.filter(({ kind }) => kind === 'limit-reached')).toHaveLength(10);
          expect(await store.createApiKey(anApiKey(), plus(NOW, 2))).toBe(false);
        });

        test('of 10 replacements of one key at once, one secret opens it afterwards', async () => {
          const key = await issued();
          const replacements = times(10, () => replacement(key));

          const outcomes = await Promise.all(replacements.map((each, index) => through(index).replaceApiKey(each)));

          expect(outcomes.map(({ kind }) => kind)).toEqual(times(10, () => 'replaced'));
          const found = await Promise.all(
            [key, ...replacements].map(({ secretSha256 }) => store.findCredential(secretSha256)),
          );
          expect(found.filter((credential) => credential !== null)).toHaveLength(1);
          expect(found[0]).toBeNull();
        });

        test('a key that is revoked while others replace it stays revoked', async () => {
          const key = await issued();
          const revokedAt = plus(NOW, 1);
          const replacements = times(10, () => replacement(key, { expiresAt: plus(NOW, 2 * DAY_MS) }));

          await Promise.all([
            ...replacements.slice(0, 5).map((each, index) => through(index).replaceApiKey(each)),
            through(1).revokeApiKey(key.studioId, key.id, { ...BY, now: revokedAt }),
            ...replacements.slice(5).map((each, index) => through(index).replaceApiKey(each)),
          ]);

          expect(await store.listApiKeys(STUDIO_ID)).toMatchObject([{ id: key.id, revokedAt }]);
        });
      });

      test('each studio has a limit of its own', async () => {
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        await issuedToTheLimit();

        expect(await store.createApiKey(anApiKey(), NOW)).toBe(false);
        await issued(anApiKey({ studioId: 'studio-2' }));
      });

      test('a key that was not written opens nothing', async () => {
        await issuedToTheLimit();
        const refused = anApiKey();

        expect(await store.createApiKey(refused, NOW)).toBe(false);
        expect(await store.findCredential(refused.secretSha256)).toBeNull();
        expect(await store.listApiKeys(STUDIO_ID)).toHaveLength(LIVE_KEYS_PER_STUDIO);
      });

      test('an expired key frees its place from the very millisecond of its expiry', async () => {
        const expiresAt = plus(NOW, 1000);
        await issuedToTheLimit({ expiresAt });

        expect(await store.createApiKey(anApiKey(), plus(expiresAt, -1))).toBe(false);
        await issued(anApiKey(), expiresAt);
      });

      test('a revoked key frees its place, once', async () => {
        const [first] = await issuedToTheLimit();
        await store.revokeApiKey(STUDIO_ID, first?.id as string, BY);
        await store.revokeApiKey(STUDIO_ID, first?.id as string, BY);

        await issued();
        expect(await store.createApiKey(anApiKey(), NOW)).toBe(false);
      });

      test('expired and revoked keys are listed on, and may be any number', async () => {
        for (const _ of [1, 2]) {
          for (const key of await issuedToTheLimit()) await store.revokeApiKey(STUDIO_ID, key.id, BY);
        }

        await issuedToTheLimit();
        expect(await store.listApiKeys(STUDIO_ID)).toHaveLength(3 * LIVE_KEYS_PER_STUDIO);
      });

      test('replacing gives another secret, hint and issuer, and leaves the rest', async () => {
        const key = await issued();
        const { secretSha256, ...rest } = replacement(key, { memberId: 'member-2' });

        const outcome = await store.replaceApiKey({ secretSha256, ...rest });

        const renewed = { ...key, memberId: 'member-2', secretSha256, secretHint: 'wxyz' };
        expect(outcome).toEqual({ kind: 'replaced', key: renewed });
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([renewed]);
      });

      test('replacing with another expiry sets it', async () => {
        const key = await issued();
        const expiresAt = plus(NOW, 30 * DAY_MS);

        expect(await store.replaceApiKey(replacement(key, { expiresAt }))).toMatchObject({ key: { expiresAt } });
        expect(await store.listApiKeys(STUDIO_ID)).toMatchObject([{ expiresAt }]);
      });

      test('a replaced secret is dead at once, for every process', async () => {
        const another = await opened.another();
        const key = await issued();
        expect(await another.findCredential(key.secretSha256)).toMatchObject({ key: { id: key.id } });
        const next = replacement(key);

        await store.replaceApiKey(next);

        for (const each of [store, another]) {
          expect(await each.findCredential(key.secretSha256)).toBeNull();
          expect(await each.findCredential(next.secretSha256)).toMatchObject({ key: { id: key.id } });
        }
      });

      test('a live key keeps its place when it is replaced, and takes no second one', async () => {
        const [first, second] = await issuedToTheLimit();
        expect(await store.replaceApiKey(replacement(first as ApiKey))).toMatchObject({ kind: 'replaced' });
        expect(await store.createApiKey(anApiKey(), NOW)).toBe(false);

        await store.revokeApiKey(STUDIO_ID, second?.id as string, BY);
        await store.replaceApiKey(replacement(first as ApiKey));
        await issued();
        expect(await store.createApiKey(anApiKey(), NOW)).toBe(false);
      });

      test('an expired key that comes back to life counts towards the limit', async () => {
        const early = await issued(anApiKey({ expiresAt: plus(NOW, 1) }));
        const now = plus(NOW, 1);
        const revival = replacement(early, { now, expiresAt: plus(now, DAY_MS) });
        const others: ApiKey[] = [];
        for (const key of times(LIVE_KEYS_PER_STUDIO, () => anApiKey())) others.push(await issued(key, now));

        expect(await store.replaceApiKey(revival)).toEqual({ kind: 'limit-reached' });
        expect((await store.listApiKeys(STUDIO_ID)).at(-1)).toEqual(early);
        expect(await store.findCredential(revival.secretSha256)).toBeNull();

        await store.revokeApiKey(STUDIO_ID, others[0]?.id as string, { ...BY, now });
        expect(await store.replaceApiKey(revival)).toMatchObject({ kind: 'replaced' });
        expect(await store.createApiKey(anApiKey(), now)).toBe(false);
      });

      test('a key whose place went to another needs a new one, also to a process whose clock is behind', async () => {
        const early = await issued(anApiKey({ expiresAt: plus(NOW, 10) }));
        for (const key of times(LIVE_KEYS_PER_STUDIO, () => anApiKey())) await issued(key, plus(NOW, 10));

        const behind = replacement(early, { now: plus(NOW, 9), expiresAt: plus(NOW, DAY_MS) });

        expect(await store.replaceApiKey(behind)).toEqual({ kind: 'limit-reached' });
      });

      test('an expired key without another expiry is left alone', async () => {
        const key = await issued(anApiKey({ expiresAt: plus(NOW, 1) }));

        expect(await store.replaceApiKey(replacement(key, { now: plus(NOW, 1) }))).toEqual({ kind: 'expired' });
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
      });

      test('a revoked key stays revoked', async () => {
        const key = await issued();
        const revoked = { ...key, revokedAt: NOW };
        expect(await store.revokeApiKey(STUDIO_ID, key.id, BY)).toEqual(revoked);

        const outcome = await store.replaceApiKey(replacement(key, { expiresAt: plus(NOW, 2 * DAY_MS) }));

        expect(outcome).toEqual({ kind: 'revoked' });
        expect(await store.revokeApiKey(STUDIO_ID, key.id, { ...BY, now: plus(NOW, DAY_MS) })).toEqual(revoked);
        expect(await (await later()).listApiKeys(STUDIO_ID)).toEqual([revoked]);
      });

      test('a revoked key is known as revoked at once, for every process', async () => {
        const another = await opened.another();
        const key = await issued();

        await store.revokeApiKey(STUDIO_ID, key.id, BY);

        for (const each of [store, another]) {
          expect(await each.findCredential(key.secretSha256)).toMatchObject({ key: { revokedAt: NOW } });
        }
      });

      test("an unknown key and another studio's key are not found, and nothing is written", async () => {
        const key = await issued();
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const move = replacement(key);

        expect(await store.replaceApiKey({ ...move, keyId: newId() })).toEqual({ kind: 'not-found' });
        expect(await store.replaceApiKey({ ...move, studioId: 'studio-2' })).toEqual({ kind: 'not-found' });
        expect(await store.revokeApiKey(STUDIO_ID, newId(), BY)).toBeNull();
        expect(await store.revokeApiKey('studio-2', key.id, BY)).toBeNull();
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
      });

      test('a credential follows the studio and its issuer at once, for every process', async () => {
        const another = await opened.another();
        const { secretSha256 } = await issued();
        const seen = async () => {
          const found = await Promise.all([store, another].map((each) => each.findCredential(secretSha256)));
          return found.map((credential) => [credential?.studio.status, credential?.issuerRole]);
        };
        const both = (...expected: unknown[]) => [expected, expected];

        expect(await seen()).toEqual(both('active', 'owner'));
        await store.putMember(aMember({ role: 'staff' }));
        expect(await seen()).toEqual(both('active', 'staff'));
        await store.putStudio(aStudio({ status: 'suspended' }), BY);
        expect(await seen()).toEqual(both('suspended', 'staff'));
        await another.putMember(aMember({ role: 'admin' }));
        expect(await seen()).toEqual(both('suspended', 'admin'));
        await another.putStudio(aStudio(), BY);
        expect(await seen()).toEqual(both('active', 'admin'));
        await store.removeMember(STUDIO_ID, 'member-1');
        expect(await seen()).toEqual(both('active', null));
      });

      test("a credential depends on its last issuer, and on no other studio's member of the same id", async () => {
        await store.putStudio(aStudio({ id: 'studio-0' }), BY);
        await store.putMember(aMember({ studioId: 'studio-0', id: 'member-2', role: 'staff' }));
        await store.putMember(aMember({ id: 'member-2', role: 'admin' }));
        const key = await issued();
        const next = replacement(key, { memberId: 'member-2' });
        await store.replaceApiKey(next);

        await store.removeMember(STUDIO_ID, 'member-1');

        expect(await store.findCredential(next.secretSha256)).toMatchObject({ issuerRole: 'admin' });
      });
    });

    describe('who did what', () => {
      const event = {
        studioId: STUDIO_ID,
        caller: null,
        apiKeyId: null,
        leadId: null,
        from: null,
        to: null,
        time: NOW,
      };

      test('is kept of a studio and its keys, newest first, with whom and when, also after the next start', async () => {
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

        store = await later();
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

      test('is kept of quotas that change, from and to which, in the write of whatever else changes', async () => {
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

        const told = { ...event, memberId: 'member-1' };
        const ofStudio = { ...told, action: 'studio-quota-changed' };
        const ofKey = { ...told, action: 'api-key-quota-changed', apiKeyId: key.id };
        store = await later();
        expect(await store.listAuditEvents(STUDIO_ID, null)).toEqual(
          [
            { ...told, action: 'studio-status-changed', to: 'active' },
            { ...ofStudio, to: '100' },
            { ...told, action: 'api-key-created', apiKeyId: key.id, time: plus(NOW, 1) },
            {
              ...told,
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

      test('is kept of a lead, and changes nothing of how the lead is read', async () => {
        const lead = await created();
        const { id: leadId, studioId } = lead;
        const move = { studioId, leadId, claims: claimsOf(lead) };
        await store.changeLeadStage({ ...move, stage: 'contacted', memberId: 'member-2', now: plus(NOW, DAY_MS) });
        await store.changeLeadStage({ ...move, stage: 'contacted', memberId: 'nobody', now: plus(NOW, 2 * DAY_MS) });
        const last = await store.changeLeadStage({ ...move, stage: 'won', memberId: null, now: NOW });
        if (last.kind !== 'changed') throw new Error(last.kind);
        const { updatedAt } = last.lead;

        const told = { ...event, action: 'lead-stage-changed', leadId };
        store = await later();
        expect(await store.listAuditEvents(studioId, leadId)).toEqual([
          { ...told, memberId: null, time: updatedAt, from: 'contacted', to: 'won' },
          { ...told, memberId: 'member-2', time: plus(updatedAt, -1), from: 'new', to: 'contacted' },
        ]);
        expect(await store.findLead(studioId, leadId)).toEqual(last.lead);
        expect(await store.listAuditEvents(studioId, null)).toEqual([]);
        expect(await store.listAuditEvents('studio-2', leadId)).toEqual([]);
      });

      test('is kept with the program that did it, of everything that is kept', async () => {
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

        store = await later();
        const callersOf = (events: readonly AuditEvent[]) => events.map(({ caller }) => caller).toSorted();
        expect(callersOf(await store.listAuditEvents(studioId, leadId))).toEqual(['corrector', 'eraser', 'mover']);
        expect(callersOf(await store.listAuditEvents(studioId, null))).toEqual(
          ['studio-maker', 'studio-stopper', 'key-maker', 'key-replacer', 'key-revoker'].toSorted(),
        );
      });

      test('is nothing of what was refused', async () => {
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

      test('is told in the order in which it was done to a studio or a key, whatever the clocks of who did it say', async () => {
        const key = anApiKey();
        const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
        const by = (ms: number, memberId: string) => ({ memberId, now: plus(NOW, ms) });
        await store.putStudio(aStudio(), by(0, 'ahead'));
        await store.putStudio(aStudio({ status: 'suspended' }), by(-5000, 'behind'));
        await store.putStudio(aStudio(), by(-5001, 'further-behind'));
        await store.createApiKey(key, plus(NOW, 0));
        await store.replaceApiKey({ studioId: STUDIO_ID, keyId: key.id, ...secret, ...by(-1, 'behind') });
        await store.revokeApiKey(STUDIO_ID, key.id, by(-2000, 'further-behind'));

        store = await later();
        const events = await store.listAuditEvents(STUDIO_ID, null);
        const doersOf = (apiKeyId: string | null) =>
          events.filter((event) => event.apiKeyId === apiKeyId).map(({ memberId }) => memberId);
        expect(doersOf(null)).toEqual(['further-behind', 'behind', 'ahead']);
        expect(doersOf(key.id)).toEqual(['further-behind', 'behind', key.memberId]);
      });

      test('is one event for each change, in their order, of however many that come at once through two stores', async () => {
        const another = await opened.another();
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

    describe('the quota of a key and of a studio', () => {
      const BY = { memberId: null, now: NOW };

      test('is there for who authenticates, also after the next start, and goes when it is taken away', async () => {
        const key = anApiKey();
        await store.putStudio(aStudio(), BY);
        await store.putMember(aMember());
        await store.createApiKey(key, NOW);
        const limits = async () => {
          const credential = await store.findCredential(key.secretSha256);
          return [credential?.key.quotaLimit, credential?.studio.quotaLimit];
        };
        expect(await limits()).toEqual([null, null]);

        expect(await store.putApiKeyQuota(STUDIO_ID, key.id, 50, BY)).toEqual({ ...key, quotaLimit: 50 });
        const put = { id: STUDIO_ID, status: undefined, regionCode: undefined };
        expect(await store.putStudio({ ...put, quotaLimit: 70 }, BY)).toEqual(aStudio({ quotaLimit: 70 }));
        store = await later();
        expect(await limits()).toEqual([50, 70]);
        expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ quotaLimit: 70 }));
        expect((await store.listStudios(null, 9)).records).toEqual([aStudio({ quotaLimit: 70 })]);
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([{ ...key, quotaLimit: 50 }]);

        expect(await store.putApiKeyQuota(STUDIO_ID, key.id, null, BY)).toEqual(key);
        expect(await store.putStudio({ ...put, quotaLimit: null }, BY)).toEqual(aStudio());
        expect(await limits()).toEqual([null, null]);
      });

      test('stays when anything else changes, a secret too', async () => {
        const key = anApiKey();
        await store.putStudio(aStudio({ quotaLimit: 70 }), BY);
        await store.createApiKey(key, NOW);
        await store.putApiKeyQuota(STUDIO_ID, key.id, 50, BY);
        const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };

        await store.replaceApiKey({ studioId: STUDIO_ID, keyId: key.id, memberId: 'member-2', ...secret, now: NOW });
        await store.noteApiKeyUse({ studioId: STUDIO_ID, keyId: key.id, now: NOW, unlessSince: plus(NOW, -1) });
        await store.putStudio({ id: STUDIO_ID, status: 'suspended', regionCode: 'DE' }, BY);

        const credential = await store.findCredential(secret.secretSha256);
        expect(credential).toMatchObject({ key: { quotaLimit: 50 }, studio: { quotaLimit: 70, status: 'suspended' } });
        expect(await store.revokeApiKey(STUDIO_ID, key.id, BY)).toMatchObject({ quotaLimit: 50 });
      });

      test('of a key is put by its studio alone', async () => {
        const key = anApiKey();
        await store.putStudio(aStudio(), BY);
        await store.createApiKey(key, NOW);

        expect(await store.putApiKeyQuota('studio-2', key.id, 5, BY)).toBeNull();
        expect(await store.putApiKeyQuota(STUDIO_ID, newId(), 5, BY)).toBeNull();

        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
      });

      test('is one of those that were put at once, and the audit leads from each to the next', async () => {
        const key = anApiKey();
        await store.putStudio(aStudio(), BY);
        await store.createApiKey(key, NOW);
        const limits = times(8, (index) => index + 1);
        const put = { id: STUDIO_ID, status: undefined, regionCode: undefined };

        await Promise.all(
          limits.flatMap((limit) => [
            store.putApiKeyQuota(STUDIO_ID, key.id, limit, BY),
            store.putStudio({ ...put, quotaLimit: limit }, BY),
          ]),
        );

        const [listed] = await store.listApiKeys(STUDIO_ID);
        const events = (await store.listAuditEvents(STUDIO_ID, null)).toReversed();
        for (const [action, last] of [
          ['api-key-quota-changed', listed?.quotaLimit],
          ['studio-quota-changed', (await store.findStudio(STUDIO_ID))?.quotaLimit],
        ] as const) {
          const changes = events.filter((event) => event.action === action);
          expect(changes).toHaveLength(limits.length);
          expect(changes.map(({ from }) => from)).toEqual([null, ...changes.slice(0, -1).map(({ to }) => to)]);
          expect(changes.at(-1)?.to).toBe(`${last}`);
        }
      });
    });

    describe('the last use of a key', () => {
      const use = (key: ApiKey, ms: number, unlessMs: number) => ({
        studioId: key.studioId,
        keyId: key.id,
        now: plus(NOW, ms),
        unlessSince: plus(NOW, unlessMs),
      });

      test('is kept, unless one is that is late enough, and outlives a new secret', async () => {
        await store.putStudio(aStudio(), BY);
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        const lastUse = async () => {
          store = await later();
          return (await store.listApiKeys(STUDIO_ID))[0]?.lastUsedAt;
        };
        expect(await lastUse()).toBeNull();

        await store.noteApiKeyUse(use(key, 1000, -59_000));
        await store.noteApiKeyUse(use(key, 2000, 999));
        expect(await lastUse()).toEqual(plus(NOW, 1000));
        await store.noteApiKeyUse(use(key, 3000, 1000));
        await store.noteApiKeyUse({ ...use(key, 9000, 9000), studioId: 'studio-2' });
        expect(await lastUse()).toEqual(plus(NOW, 3000));
        expect(await store.findCredential(key.secretSha256)).toMatchObject({ key: { lastUsedAt: plus(NOW, 3000) } });

        const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
        await store.replaceApiKey({ studioId: STUDIO_ID, keyId: key.id, memberId: 'member-1', ...secret, now: NOW });
        expect(await lastUse()).toEqual(plus(NOW, 3000));
      });
    });

    describe('the directory', () => {
      test('a studio is found as it was put, and put again as it was put last', async () => {
        for (const studio of [aStudio(), aStudio({ status: 'suspended' }), aStudio()]) {
          expect(await store.putStudio(studio, BY)).toEqual(studio);
          expect(await store.findStudio(STUDIO_ID)).toEqual(studio);
        }
        expect(await store.findStudio('studio-2')).toBeNull();
      });

      test('what a put of a studio does not give stays as it is', async () => {
        await store.putStudio(aStudio({ regionCode: 'DE' }), BY);
        const asItIs = { id: STUDIO_ID, status: undefined, regionCode: undefined };

        expect(await store.putStudio({ ...asItIs, status: 'suspended' }, BY)).toMatchObject({ regionCode: 'DE' });
        expect(await store.putStudio({ ...asItIs, regionCode: 'FR' }, BY)).toMatchObject({ status: 'suspended' });
        expect(await store.putStudio(asItIs, BY)).toMatchObject({ status: 'suspended', regionCode: 'FR' });
        expect(await store.putStudio({ ...asItIs, regionCode: null }, BY)).toMatchObject({ regionCode: null });
        expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status: 'suspended', regionCode: null });
      });

      test('a studio that is not there is not made without a status', async () => {
        expect(await store.putStudio({ id: STUDIO_ID, status: undefined, regionCode: 'DE' }, BY)).toBeNull();
        expect(await store.findStudio(STUDIO_ID)).toBeNull();
      });

      test('a new studio has no region unless one is given', async () => {
        const put = { id: STUDIO_ID, status: 'active', regionCode: undefined } as const;
        expect(await store.putStudio(put, BY)).toEqual(aStudio());
      });

      test('putting a studio again leaves its members, sources, keys and leads alone', async () => {
        const [source, key] = [aLeadSource(), anApiKey()];
        await store.putStudio(aStudio(), BY);
        await store.putMember(aMember());
        await store.putLeadSource(source);
        await store.createApiKey(key, NOW);
        const lead = await created();

        await store.putStudio(aStudio({ status: 'suspended', regionCode: 'FR' }), BY);

        expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember());
        expect(await sourcesIn(store, STUDIO_ID)).toEqual([source]);
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
        expect(await everyLead()).toEqual([lead]);
      });

      test('many first puts of one studio at once make one studio', async () => {
        const another = await opened.another();

        await Promise.all(times(20, (index) => (index % 2 ? store : another).putStudio(aStudio(), BY)));

        expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio());
      });

      test('a member and a source of no studio are not written', async () => {
        const source = aLeadSource();

        expect(await store.putMember(aMember())).toBe('no-studio');
        expect(await store.putLeadSource(source)).toBe('no-studio');

        await store.putStudio(aStudio(), BY);
        expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
        expect(await store.findLeadSource(STUDIO_ID, source.id)).toBeNull();
        expect(await sourcesIn(store, STUDIO_ID)).toEqual([]);
      });

      test('a member is found as it was put last, in its studio only', async () => {
        await store.putStudio(aStudio(), BY);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        for (const role of ['owner', 'admin', 'staff'] as const) {
          expect(await store.putMember(aMember({ role }))).toBe('put');
          expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember({ role }));
        }
        expect(await store.findMember('studio-2', 'member-1')).toBeNull();
        expect(await store.findMember(STUDIO_ID, 'Member-1')).toBeNull();
      });

      test('a removed member is answered once, and nobody else is removed', async () => {
        await store.putStudio(aStudio(), BY);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const others = [aMember({ id: 'member-2' }), aMember({ studioId: 'studio-2' })];
        for (const member of [aMember(), ...others]) await store.putMember(member);

        expect(await store.removeMember(STUDIO_ID, 'member-1')).toEqual(aMember());
        expect(await store.removeMember(STUDIO_ID, 'member-1')).toBeNull();
        expect(await store.removeMember('studio-3', 'member-1')).toBeNull();
        expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
        for (const member of others) expect(await store.findMember(member.studioId, member.id)).toEqual(member);
      });

      test('many changes of one directory at once all stay', async () => {
        const another = await opened.another();
        await store.putStudio(aStudio(), BY);
        const sources = times(10, () => aLeadSource());
        const members = times(10, (index) => aMember({ id: `member-${index}` }));

        await Promise.all([
          ...sources.map((source, index) => (index % 2 ? store : another).putLeadSource(source)),
          ...members.map((member, index) => (index % 2 ? another : store).putMember(member)),
        ]);

        expect(await sourcesIn(store, STUDIO_ID)).toEqual(sources);
        for (const member of members) expect(await store.findMember(STUDIO_ID, member.id)).toEqual(member);
      });

      test('sources are listed by id, as they were put last, in their studio only', async () => {
        await store.putStudio(aStudio(), BY);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const sources = times(4, () => aLeadSource());
        const theirs = aLeadSource({ studioId: 'studio-2' });
        for (const source of [...sources.toReversed(), theirs]) expect(await store.putLeadSource(source)).toBe('put');
        const disabled = { ...(sources[2] as (typeof sources)[number]), name: 'Old campaign', enabled: false };

        expect(await store.putLeadSource(disabled)).toBe('put');

        expect(await sourcesIn(store, STUDIO_ID)).toEqual(sources.with(2, disabled));
        expect(await sourcesIn(store, 'studio-2')).toEqual([theirs]);
        expect(await sourcesIn(store, 'studio-3')).toEqual([]);
        expect(await store.findLeadSource(STUDIO_ID, disabled.id)).toEqual(disabled);
        expect(await store.findLeadSource(STUDIO_ID, theirs.id)).toBeNull();
      });

      test('a removed source is answered once, is none then, and makes room for another', async () => {
        await store.putStudio(aStudio(), BY);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const sources = times(MAX_LEAD_SOURCES, () => aLeadSource());
        await opened.fill({ sources });
        const [first, ...others] = sources as [LeadSource, ...LeadSource[]];

        expect(await store.removeLeadSource('studio-2', first.id)).toBeNull();
        expect(await store.removeLeadSource(STUDIO_ID, first.id)).toEqual(first);
        expect(await store.removeLeadSource(STUDIO_ID, first.id)).toBeNull();
        expect(await store.findLeadSource(STUDIO_ID, first.id)).toBeNull();
        const latest = aLeadSource();
        expect(await store.putLeadSource(latest)).toBe('put');
        expect(await sourcesIn(store, STUDIO_ID)).toEqual([...others, latest]);
      });

      test.each([{ stores: 1 }, { stores: 2 }])(
        'of 30 members and 30 sources put at once through $stores store(s), as many are written as there is room for',
        async ({ stores }) => {
          const all = stores === 1 ? [store] : [store, await opened.another()];
          const through = (index: number) => all[index % all.length] as Store;
          await store.putStudio(aStudio(), BY);
          await opened.fill({
            members: times(MAX_MEMBERS - 10, (index) => aMember({ id: `there-${index}` })),
            sources: times(MAX_LEAD_SOURCES - 10, () => aLeadSource()),
          });

          const outcomes = await Promise.all([
            ...times(30, (index) => through(index).putMember(aMember({ id: `new-${index}` }))),
            ...times(30, (index) => through(index).putLeadSource(aLeadSource())),
          ]);

          const written = (part: typeof outcomes) => part.filter((outcome) => outcome === 'put').length;
          expect([written(outcomes.slice(0, 30)), written(outcomes.slice(30))]).toEqual([10, 10]);
          expect(outcomes.filter((outcome) => outcome === 'limit-reached')).toHaveLength(40);
          expect(await sourcesIn(store, STUDIO_ID)).toHaveLength(MAX_LEAD_SOURCES);
        },
      );

      test('in a studio that has more than the bound, each member and source can be put and removed, and none is added', async () => {
        await store.putStudio(aStudio(), BY);
        const members = times(MAX_MEMBERS + 2, (index) => aMember({ id: `member-${index}` }));
        const sources = times(MAX_LEAD_SOURCES + 2, () => aLeadSource());
        await opened.fill({ members, sources });
        const [member, source] = [members[5] as Member, sources[5] as LeadSource];

        expect(await store.putMember({ ...member, role: 'staff' })).toBe('put');
        expect(await store.putLeadSource({ ...source, enabled: false })).toBe('put');
        expect(await store.putMember(aMember({ id: 'another' }))).toBe('limit-reached');
        expect(await store.putLeadSource(aLeadSource())).toBe('limit-reached');
        expect(await store.removeMember(STUDIO_ID, member.id)).toEqual({ ...member, role: 'staff' });
        expect(await store.removeLeadSource(STUDIO_ID, source.id)).toEqual({ ...source, enabled: false });
        expect(await store.putMember(aMember({ id: 'another' }))).toBe('limit-reached');
      });

      test('sources are listed in pages, by id, that make the whole', async () => {
        await store.putStudio(aStudio(), BY);
        const sources = times(MAX_LEAD_SOURCES + 5, () => aLeadSource());
        await opened.fill({ sources });

        const first = await store.listLeadSources(STUDIO_ID, null, 10);
        expect(first).toEqual({ records: sources.slice(0, 10), next: sources[9]?.id });
        const second = await store.listLeadSources(STUDIO_ID, first.next, MAX_LEAD_SOURCES - 10);
        expect(second).toEqual({
          records: sources.slice(10, MAX_LEAD_SOURCES),
          next: sources[MAX_LEAD_SOURCES - 1]?.id,
        });
        const third = await store.listLeadSources(STUDIO_ID, second.next, MAX_LEAD_SOURCES);
        expect(third).toEqual({ records: sources.slice(MAX_LEAD_SOURCES), next: null });
      });

      test('studios are listed by the bytes of their ids, as they were put last, in pages that make the whole', async () => {
        const ids = ['-', '0', '9', 'A', 'Z', '_', 'a', 'aA', 'aa', 'z'.repeat(64)];
        for (const id of ids.toReversed()) await store.putStudio(aStudio({ id }), BY);
        await store.putStudio({ id: 'a', status: 'suspended', regionCode: 'DE' }, BY);
        const studios = await Promise.all(ids.map((id) => store.findStudio(id)));

        const first = await store.listStudios(null, 4);
        expect(first).toEqual({ records: studios.slice(0, 4), next: 'A' });
        const second = await store.listStudios(first.next, 4);
        expect(second).toEqual({ records: studios.slice(4, 8), next: 'aA' });
        expect(await store.listStudios(second.next, 4)).toEqual({ records: studios.slice(8), next: null });
        expect(await store.listStudios('b', 1)).toEqual({ records: studios.slice(9), next: null });
      });

      test('a studio whose id is none is passed over', async () => {
        await opened.makeStudios('first', 'not an id', 'x'.repeat(65), 'ä', '', 'third');

        expect((await store.listStudios(null, 1)).next).toBe('first');
        const { records, next } = await store.listStudios(null, 2);
        expect([records.map(({ id }) => id), next]).toEqual([['first', 'third'], null]);
      });

      test('two studios may have a source of the same id', async () => {
        await store.putStudio(aStudio(), BY);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        const mine = aLeadSource();
        const theirs = { ...mine, studioId: 'studio-2', enabled: false };
        await store.putLeadSource(mine);
        await store.putLeadSource(theirs);

        expect(await store.findLeadSource(STUDIO_ID, mine.id)).toEqual(mine);
        expect(await store.findLeadSource('studio-2', mine.id)).toEqual(theirs);
      });
    });

    describe('what the database holds is not always what was written', () => {
      const damagesOf = (...kinds: readonly Damage['kind'][]) =>
        damages.filter(({ kind }) => kinds.includes(kind)).map((damage) => ({ title: titleOf(damage), damage }));
      const [unknownStage, unknownStatus, unknownScope] = ['stage', 'status', 'scopes'].map((word) =>
        damages.find(({ field }) => field === word),
      ) as [Damage, Damage, Damage];

      beforeEach(async () => {
        await store.putStudio(aStudio(), BY);
        await store.putMember(aMember());
      });

      test.each(damagesOf('lead'))(
        '$title: nobody but who asks for it notices, and what it claims stays claimed',
        async ({ damage }) => {
          const leads = times(3, () => aLead());
          const claims = leads.map((lead) => claimsOf(lead));
          for (const [index, lead] of leads.entries()) await created(lead, claims[index]);
          const theirs = await created(aLead({ studioId: 'studio-2' }));
          const [oldest, bad, newest] = leads as [Lead, Lead, Lead];
          await opened.damage(damage, bad);

          // Together, so that they are read together.
          const [own, ...others] = await Promise.allSettled([
            store.findLead(STUDIO_ID, bad.id),
            store.findLead('studio-2', theirs.id),
            store.findLead(STUDIO_ID, newest.id),
            everyLead(),
            everyLead('studio-2'),
          ]);
          expect(own).toMatchObject({ status: 'rejected', reason: { constructor: UnreadableRecord, kind: 'lead' } });
          expect(others.map((other) => 'value' in other && other.value)).toEqual([
            theirs,
            newest,
            [newest, oldest],
            [theirs],
          ]);
          expect(opened.reported).toMatchObject([{ kind: 'lead', id: bad.id }]);

          // The original answer does not depend on where the lead stands by now.
          const isLater = /^(?:stage|updated_?at)$/i.test(damage.field);
          const { idempotencyKey, fingerprint } = claims[1] as LeadClaims;
          const repeated = await Promise.allSettled([
            store.createLead({ ...bad, id: newId() }, claims[1] as LeadClaims),
            store.findLeadByIdempotencyKey(STUDIO_ID, idempotencyKey),
          ]);
          expect(repeated.map((outcome) => ('value' in outcome ? outcome.value : outcome.reason.name))).toEqual(
            isLater
              ? [
                  { kind: 'replayed', lead: bad },
                  { lead: bad, fingerprint },
                ]
              : times(2, () => 'UnreadableRecord'),
          );
          const rival = aLead({ contact: bad.contact });
          expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: bad.id });
          const move = {
            studioId: STUDIO_ID,
            leadId: bad.id,
            stage: 'won',
            claims: claimsOf(bad),
            memberId: null,
            now: NOW,
          } as const;
          await expect(store.changeLeadStage(move)).rejects.toThrow(UnreadableRecord);
          expect(await store.listAuditEvents(STUDIO_ID, bad.id)).toEqual([]);
          // Claims are made anew as long as it can be read what of.
          const claiming = damage.field.startsWith('contact') ? [oldest, newest] : leads;
          expect((await openClaimsIn(store, STUDIO_ID)).map(({ id }) => id)).toEqual(claiming.map(({ id }) => id));
          expect(await everyLead()).toEqual([newest, oldest]);
        },
      );

      test.each(damagesOf('creation'))(
        '$title is not said to conflict with its own repetition, and its lead is as readable as ever',
        async ({ damage }) => {
          const lead = aLead();
          const claims = claimsOf(lead);
          await created(lead, claims);
          await opened.damage(damage, lead);

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

      test.each(damagesOf('claim'))(
        '$title: it is reported and left as it is, and the contact of its lead stays taken',
        async ({ damage }) => {
          const [first, bad, last] = times(3, () => aLead()) as [Lead, Lead, Lead];
          for (const lead of [first, bad, last]) await created(lead);
          await opened.damage(damage, bad);

          const { leads } = await store.listClaims(STUDIO_ID, null, 10);

          expect(leads.map(({ id }) => id)).toEqual([first.id, last.id]);
          expect(opened.reported).toMatchObject([{ kind: 'lead', id: bad.id, field: 'claims' }]);
          const rival = aLead({ contact: bad.contact });
          expect(await store.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: bad.id });
          expect(await everyLead()).toEqual([last, bad, first]);
        },
      );

      test('leads that cannot be read, however many, hide none of those before and behind them, and fill no page', async () => {
        const leads = times(240, () => aLead());
        await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
        const isBad = (index: number) => (index >= 60 && index < 180) || index % 10 === 0 || index === 239;
        await opened.damage(unknownStage, ...leads.filter((_, index) => isBad(index)));

        const pages = await everyPage(25);

        const good = leads.filter((_, index) => !isBad(index)).toReversed();
        expect(pages.flatMap(({ records }) => records)).toEqual(good);
        expect(pages.map(({ records }) => records.length)).toEqual([25, 25, 25, 25, good.length - 100]);
      });

      test('a page that finds nothing but leads that cannot be read leads on to the next', async () => {
        const first = await created();
        const bad = times(1500, () => aLead());
        await Promise.all(bad.map((lead) => store.createLead(lead, claimsOf(lead))));
        const last = await created();
        await opened.damage(unknownStage, ...bad);

        const pages = await everyPage(1);

        expect(pages.length).toBeLessThan(6);
        expect(pages.flatMap(({ records }) => records)).toEqual([last, first]);
      });

      test('a walk passes over leads that cannot be read, however many', async () => {
        const leads = times(240, () => aLead());
        await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
        const isBad = (index: number) => index === 0 || (index >= 60 && index < 180) || index === 239;
        await opened.damage(unknownStage, ...leads.filter((_, index) => isBad(index)));

        const first = await store.walkLeads(STUDIO_ID, null, 100);
        const second = await store.walkLeads(STUDIO_ID, first.next, 100);

        const good = leads.filter((_, index) => !isBad(index));
        expect([first, second]).toEqual([
          { records: good.slice(0, 100), next: good[99]?.id },
          { records: good.slice(100), next: null },
        ]);
        expect(opened.reported.map(({ id }) => id)).toContain(leads[239]?.id);
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
        '$title: it opens nothing, is listed, has its slot, and can be revoked',
        async ({ damage }) => {
          const keys = times(LIVE_KEYS_PER_STUDIO, () => anApiKey());
          for (const key of keys) expect(await store.createApiKey(key, NOW)).toBe(true);
          const [bad, good] = keys as [ApiKey, ApiKey];
          await opened.damage(damage, bad);

          const [shut, open] = await Promise.all(
            [bad, good].map(({ secretSha256 }) => store.findCredential(secretSha256)),
          );
          expect(shut).toBeNull();
          expect(open).toMatchObject({ key: good });

          const listed = await store.listApiKeys(STUDIO_ID);
          expect(listed.map(({ id }) => id)).toEqual(keys.map(({ id }) => id).toReversed());
          expect(listed.at(-1)).toMatchObject({ id: bad.id, expiresAt: NO_TIME });
          // What is told of it has room in an answer, whatever stands there.
          expect(JSON.stringify(listed.at(-1)).length).toBeLessThan(2000);
          expect(opened.reported).toMatchObject(expect.arrayContaining([expect.objectContaining({ id: bad.id })]));
          const { studioId, id: keyId, memberId } = bad;
          const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
          await expect(store.replaceApiKey({ studioId, keyId, memberId, ...secret, now: NOW })).rejects.toThrow(
            UnreadableRecord,
          );

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

      test('of a key that cannot be read everything else is told', async () => {
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        for (const damage of damages)
          if (damage.kind === 'key' && damage.field === 'name') await opened.damage(damage, key);

        expect(await store.listApiKeys(STUDIO_ID)).toEqual([{ ...key, name: NO_NAME, expiresAt: NO_TIME }]);
      });

      test('of a key whose hint cannot be read everything else is told, and an empty text for the hint', async () => {
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        for (const damage of damages)
          if (damage.kind === 'key' && /^secret_?hint$/i.test(damage.field)) await opened.damage(damage, key);

        expect(await store.listApiKeys(STUDIO_ID)).toEqual([{ ...key, secretHint: '', expiresAt: NO_TIME }]);
      });

      test('a scope that nobody knows grants nothing, and takes nothing from the others', async () => {
        const key = anApiKey({ scopes: ['leads.read'] });
        await store.createApiKey(key, NOW);
        await opened.damage(unknownScope, key);

        expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
        expect(await store.listApiKeys(STUDIO_ID)).toEqual([key]);
        expect(opened.reported).toEqual([]);
      });

      test.each(damagesOf('studio'))('$title: it is suspended until it is put again', async ({ damage }) => {
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        await store.putStudio(aStudio({ id: 'studio-2' }), BY);
        await opened.damage(damage, { studioId: STUDIO_ID, id: STUDIO_ID });

        const suspended = aStudio({ status: 'suspended' });
        const [own, theirs, credential] = await Promise.all([
          store.findStudio(STUDIO_ID),
          store.findStudio('studio-2'),
          store.findCredential(key.secretSha256),
        ]);
        expect([own, theirs, credential?.studio]).toEqual([suspended, aStudio({ id: 'studio-2' }), suspended]);
        expect(opened.reported[0]).toMatchObject({ kind: 'studio', id: STUDIO_ID });

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
        'a studio with a status that nobody knows is made %s, which is kept as an event that knows of none before',
        async (status) => {
          await opened.damage(unknownStatus, { studioId: STUDIO_ID, id: STUDIO_ID });

          await store.putStudio(aStudio({ status, regionCode: 'DE' }), BY);

          expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status, regionCode: 'DE' });
          expect((await store.listAuditEvents(STUDIO_ID, null))[0]).toMatchObject({ from: null, to: status });
        },
      );

      test.each(damagesOf('renewal'))(
        '$title: its studio is suspended, and all claims are made anew when it is put',
        async ({ damage }) => {
          const other = aStudio({ id: 'studio-2' });
          await store.putStudio(other, BY);
          for (const studio of [aStudio(), other]) await store.putStudio({ ...studio, regionCode: 'DE' }, BY);
          const due = async () => (await store.listClaimRenewals()).map(({ studio }) => studio.id);
          expect(await due()).toEqual([STUDIO_ID, 'studio-2']);
          await opened.damage(damage, { studioId: STUDIO_ID, id: STUDIO_ID });

          expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ status: 'suspended', regionCode: 'DE' }));
          expect(await due()).toEqual(['studio-2']);

          const put = { id: STUDIO_ID, status: 'active', regionCode: undefined } as const;
          expect(await store.putStudio(put, { ...BY, now: plus(NOW, 1) })).toMatchObject({ regionCode: 'DE' });
          expect(await store.findStudio(STUDIO_ID)).toMatchObject({ status: 'active', formerRules: [{ version: 1 }] });
          expect((await store.listClaimRenewals())[0]?.renewal).toMatchObject({ step: 'first', since: plus(NOW, 1) });
        },
      );

      test.each(damagesOf('member'))('$title has no role, and can be put and removed', async ({ damage }) => {
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        await opened.damage(damage, aMember());

        expect(await store.findMember(STUDIO_ID, 'member-1')).toBeNull();
        expect(await store.findCredential(key.secretSha256)).toMatchObject({ issuerRole: null });
        expect(opened.reported[0]).toMatchObject({ kind: 'member', id: 'member-1' });

        await store.putMember(aMember());
        expect(await store.findMember(STUDIO_ID, 'member-1')).toEqual(aMember());
        await opened.damage(damage, aMember());
        expect(await store.removeMember(STUDIO_ID, 'member-1')).toBeNull();
      });

      test.each(damagesOf('source'))('$title is none, until it is put again', async ({ damage }) => {
        const key = anApiKey();
        const sources = times(3, () => aLeadSource());
        await store.createApiKey(key, NOW);
        for (const source of sources) await store.putLeadSource(source);
        const [first, bad, last] = sources as [LeadSource, LeadSource, LeadSource];
        await opened.damage(damage, bad);

        expect(await store.findLeadSource(STUDIO_ID, bad.id)).toBeNull();
        expect(await store.findCredential(key.secretSha256, bad.id)).toMatchObject({ source: null });
        expect(await store.findCredential(key.secretSha256, last.id)).toMatchObject({ source: last });
        expect(await sourcesIn(store, STUDIO_ID)).toEqual([first, last]);
        expect(opened.reported[0]).toMatchObject({ kind: 'lead source', id: bad.id });

        await store.putLeadSource(bad);
        expect(await sourcesIn(store, STUDIO_ID)).toEqual(sources);
      });

      test.each(damagesOf('event'))('$title is passed over', async ({ damage }) => {
        await opened.damage(damage, { studioId: STUDIO_ID, id: STUDIO_ID });
        await store.putStudio(aStudio({ status: 'suspended' }), { ...BY, now: plus(NOW, 1) });

        expect(await store.listAuditEvents(STUDIO_ID, null)).toMatchObject([{ from: 'active', to: 'suspended' }]);
      });

      // A store that keeps its events by themselves has no such damage.
      const inTheWay = [...damagesOf('lead with events'), ...damagesOf('key with events')];
      test.each(inTheWay)('$title: changing it is not to be repeated, and changes nothing', async ({ damage }) => {
        const lead = await created();
        const key = anApiKey();
        await store.createApiKey(key, NOW);
        const isLead = damage.kind === 'lead with events';
        await opened.damage(damage, isLead ? lead : key);

        const secret = { secretSha256: aSecretHash(), secretHint: 'hint', expiresAt: null };
        const { studioId, id: keyId, memberId } = key;
        const change = isLead
          ? moved(lead, 'won')
          : store.replaceApiKey({ studioId, keyId, memberId, ...secret, now: NOW });
        const fault = await change.catch((error) => error);

        expect(fault).toBeInstanceOf(UnreadableRecord);
        expect(fault).toMatchObject({
          kind: isLead ? 'lead' : 'API key',
          id: isLead ? lead.id : key.id,
          field: 'history',
        });
        expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(lead);
        expect(await store.findCredential(key.secretSha256)).toMatchObject({ key });
      });

      test('what is said of a record that cannot be read has nothing of what it holds', async () => {
        const lead = await created(aLead({ note: 'calls back after six' }));
        await opened.damage({ ...unknownStage, value: 'between-jobs' }, lead);

        const fault = await store.findLead(STUDIO_ID, lead.id).catch((error) => error);

        expect(fault.message).toBe(
          `the lead ${lead.id} of studio ${STUDIO_ID} cannot be read: stage is not as it must be`,
        );
        expect(inspect(fault)).not.toMatch(/between-jobs|calls back|Ada|example\.org/);
      });
    });

    describe('keeping and closing', () => {
      test('what was answered as written is there after the store was opened again', async () => {
        const [source, key] = [aLeadSource(), anApiKey()];
        await store.putStudio(aStudio({ regionCode: 'DE' }), BY);
        await store.putMember(aMember());
        await store.putLeadSource(source);
        await store.createApiKey(key, NOW);
        const lead = aLead();
        const claims = claimsOf(lead);
        await created(lead, claims);
        const won = await moved(lead, 'won');
        const next = await created(aLead({ contact: lead.contact }));

        const reopened = await later();

        expect(await reopened.findStudio(STUDIO_ID)).toEqual(aStudio({ regionCode: 'DE' }));
        expect(await reopened.findMember(STUDIO_ID, 'member-1')).toEqual(aMember());
        expect(await sourcesIn(reopened, STUDIO_ID)).toEqual([source]);
        expect(await reopened.findCredential(key.secretSha256)).toMatchObject({ key });
        expect(await leadsIn(reopened, STUDIO_ID, null, 10)).toEqual([next, won]);
        expect(await reopened.createLead({ ...lead, id: newId() }, claims)).toEqual({ kind: 'replayed', lead: won });
        const rival = aLead({ contact: lead.contact });
        expect(await reopened.createLead(rival, claimsOf(rival))).toEqual({ kind: 'already-open', leadId: next.id });
      });

      test('what one process was answered as written, another sees at once', async () => {
        const another = await opened.another();
        const lead = await created();

        expect(await another.findLead(lead.studioId, lead.id)).toEqual(lead);
        expect(await leadsIn(another, lead.studioId, null, 1)).toEqual([lead]);
      });

      test('check answers when the store does', async () => {
        await expect(store.check()).resolves.toBeUndefined();
      });

      test('writes under way when the store is closed are finished', async () => {
        const another = await opened.another();
        const leads = times(20, () => aLead());
        const writes = leads.map((lead) => store.createLead(lead, claimsOf(lead)));

        await store.close();

        expect(await Promise.all(writes)).toEqual(leads.map((lead) => ({ kind: 'created', lead })));
        expect(await leadsIn(another, STUDIO_ID, null, 100)).toEqual(leads.toReversed());
      });

      test('closing twice is no fault, and leaves other stores on the same data alone', async () => {
        const another = await opened.another();
        await store.close();
        await store.close();

        await expect(another.check()).resolves.toBeUndefined();
      });

      const lead = aLead();
      const callsOf: Record<string, (closed: Store) => Promise<unknown>> = {
        check: (closed) => closed.check(),
        createLead: (closed) => closed.createLead(lead, claimsOf(lead)),
        findLead: (closed) => closed.findLead(STUDIO_ID, lead.id),
        listLeads: (closed) => closed.listLeads(STUDIO_ID, null, 10),
        findCredential: (closed) => closed.findCredential(aSecretHash()),
        putStudio: (closed) => closed.putStudio(aStudio(), BY),
        findStudio: (closed) => closed.findStudio(STUDIO_ID),
      };

      test.each(Object.entries(callsOf))('a closed store says that it is not available: %s', async (_, call) => {
        await store.close();

        await expect(call(store)).rejects.toBeInstanceOf(StoreUnavailable);
      });
    });
  });
}

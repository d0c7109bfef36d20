import { beforeEach, describe, expect, test } from 'vitest';
import type { CreateLeadOutcome } from '../../src/domain/lead-creation.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aContactKey, aLead, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, changesIn, describeThroughStores, toPublicForm } from './store-actions.ts';

/** The promises of `createLead`, including concurrent writes of one key or contact. */
export function createLeadContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, corrected, everyLead } = actionsOn(() => store);

  describe('creating leads', () => {
    test('a created lead is found unchanged by its id, by its idempotency key and in the list', async () => {
      const lead = aLead({
        contact: { type: 'phone', value: '+49 (0)30 1234567' },
        sourceId: newId(),
        note: 'Calls back after six.',
        apiKeyId: newId(),
      });
      const keys = keysFor(lead);
      await created(lead, keys);

      expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
      expect(await store.findLeadByIdempotencyKey(lead.studioId, keys.idempotencyKey)).toEqual({
        lead,
        fingerprint: keys.fingerprint,
      });
      expect(await everyLead()).toEqual([lead]);
    });

    test.each([
      ['every character that JSON escapes', '"\\\b\f\n\r\t\u0001\u001f\u007f\u2028'],
      ['text like the members of JSON', '","sourceId":null,"note":"x","x":"'],
      ['text beyond the basic plane', 'Zoë 🦉 ÀÉ'],
    ])('findPublicLead returns a lead with %s in name and note like findLead', async (_, text) => {
      for (const [displayName, note, sourceId] of [
        [text, text, newId()],
        [text, null, null],
        [`${text}\\`, `${text}\\`, null],
      ] as const) {
        const lead = await created(aLead({ displayName, note, sourceId, createdAt: new Date(-1) }));
        expect(JSON.parse((await store.findPublicLead(lead.studioId, lead.id)) ?? '')).toEqual(toPublicForm(lead));
        expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
      }
      await everyLead();
    });

    // @proves leads-43
    test('a lead keeps the API key that created it through a replay, a move and a correction', async () => {
      const lead = aLead({ apiKeyId: newId() });
      const keys = keysFor(lead);
      await created(lead, keys);
      const other = { ...lead, id: newId(), apiKeyId: newId() };
      expect(await store.createLead(other, keys)).toEqual({ kind: 'replayed', lead });
      const { updatedAt } = await moved(lead, 'contacted');
      const now = await corrected({ ...lead, updatedAt }, { displayName: 'Augusta', note: 'corrected' });

      expect(now).toMatchObject({ apiKeyId: lead.apiKeyId });
      store = await opened().reopen();
      const { studioId, id } = lead;
      const { leads } = await store.findLeadsOfContact(studioId, keys.contactKeys);
      const [change] = await changesIn(store, 1);
      const { records: walked } = await store.walkLeads(studioId, null, 10);
      const all = [await store.findLead(studioId, id), ...(await everyLead()), ...walked, ...leads, change?.lead];
      expect(all).toEqual(all.map(() => now));
      const counted = await store.listLeadsToCount(studioId, null, 10);
      expect(counted.records).toMatchObject([{ id, apiKeyId: lead.apiKeyId }]);
    });

    test('a repetition with the same key and data returns the first lead', async () => {
      const first = aLead();
      const keys = keysFor(first);
      await created(first, keys);

      const retry = { ...first, id: newId() };

      expect(await store.createLead(retry, keys)).toEqual({ kind: 'replayed', lead: first });
      expect(await everyLead()).toEqual([first]);
    });

    test('the same key with other data is a conflict, whoever holds the contact, and writes nothing', async () => {
      const first = aLead();
      const keys = keysFor(first);
      const { idempotencyKey, fingerprint } = keys;
      await created(first, keys);
      const second = await created();

      for (const lead of [
        aLead(),
        aLead({ contact: first.contact, note: 'other' }),
        aLead({ contact: second.contact }),
      ]) {
        expect(await store.createLead(lead, keysFor(lead, { idempotencyKey }))).toEqual({
          kind: 'idempotency-conflict',
        });
      }
      const otherVersion = { ...keys, fingerprint: { ...fingerprint, version: fingerprint.version + 1 } };
      expect(await store.createLead({ ...first, id: newId() }, otherVersion)).toEqual({
        kind: 'idempotency-conflict',
      });
      expect(await everyLead()).toEqual([second, first]);
    });

    test("another key for a contact with an open lead gets that lead's id, and nothing is written", async () => {
      const first = await created();
      const second = aLead({ contact: first.contact });

      expect(await store.createLead(second, keysFor(second))).toEqual({ kind: 'already-open', leadId: first.id });
      expect(await everyLead()).toEqual([first]);
    });

    test('a refused creation leaves its key free for other data', async () => {
      const first = await created();
      const refused = aLead({ contact: first.contact });
      const { idempotencyKey } = keysFor(refused);
      await store.createLead(refused, keysFor(refused, { idempotencyKey }));

      expect(await store.findLeadByIdempotencyKey(STUDIO_ID, idempotencyKey)).toBeNull();
      const other = aLead();
      await created(other, keysFor(other, { idempotencyKey }));
    });

    test('a replay returns the current lead, even if it is closed and another holds the contact', async () => {
      const lead = aLead();
      const keys = keysFor(lead);
      await created(lead, keys);
      const won = await moved(lead, 'won');
      await created(aLead({ contact: lead.contact }));

      expect(await store.createLead({ ...lead, id: newId() }, keys)).toEqual({ kind: 'replayed', lead: won });
      expect(await store.findLeadByIdempotencyKey(STUDIO_ID, keys.idempotencyKey)).toMatchObject({ lead: won });
    });

    test('studios and contacts that differ only in letter case are different', async () => {
      const lead = aLead({ studioId: 'Studio' });
      const keys = keysFor(lead);
      await created(lead, keys);

      expect(await store.findLead('studio', lead.id)).toBeNull();
      await created({ ...lead, id: newId(), studioId: 'studio' }, keys);
      for (const name of ['kEy', 'KeY']) {
        const other = aLead();
        await created(other, keysFor(other, { contactKeys: [aContactKey(name)] }));
      }
    });
  });

  // @proves imports-1
  describe('creating closed leads', () => {
    test('creating a closed lead takes no contact, and its contact and key find it', async () => {
      const open = await created();
      const closed = aLead({ stage: 'won', contact: open.contact, updatedAt: plus(open.createdAt, 5000) });
      const keys = keysFor(closed);
      await created(closed, keys);
      await created(aLead({ stage: 'lost', contact: open.contact }));

      expect(await store.findLead(STUDIO_ID, closed.id)).toEqual(closed);
      expect((await store.findLeadsOfContact(STUDIO_ID, keys.contactKeys)).leads).toHaveLength(3);
      expect(await store.createLead(aLead({ stage: 'won', contact: open.contact }), keys)).toMatchObject({
        kind: 'replayed',
        lead: { id: closed.id },
      });
      const rival = aLead({ contact: open.contact });
      expect(await store.createLead(rival, keysFor(rival))).toEqual({ kind: 'already-open', leadId: open.id });
      await moved(open, 'lost');
      await moved(closed, 'new');
      expect(await store.createLead(rival, keysFor(rival))).toEqual({ kind: 'already-open', leadId: closed.id });
    });

    test('a closed lead enters the change feed with the time of writing', async () => {
      const lead = aLead({ createdAt: new Date('2019-05-04T00:00:00Z') });
      await store.createLead(lead, keysFor(lead), { now: NOW });

      expect(await changesIn(store, 1)).toMatchObject([{ lead, since: NOW }]);
    });
  });

  // @proves mongodb-19
  describe('concurrent creations', () => {
    const kinds = (outcomes: readonly CreateLeadOutcome[]) =>
      Object.fromEntries(
        Object.entries(Object.groupBy(outcomes, ({ kind }) => kind)).map(([kind, list]) => [kind, list?.length]),
      );

    describeThroughStores('', opened, (through) => {
      test('one key with 50 different bodies creates one lead; the rest are conflicts', async () => {
        const idempotencyKey = newId();

        const outcomes = await Promise.all(
          times(50, (index) => {
            const lead = aLead({ note: `body ${index}` });
            return through(index).createLead(lead, keysFor(lead, { idempotencyKey }));
          }),
        );

        expect(kinds(outcomes)).toEqual({ created: 1, 'idempotency-conflict': 49 });
        expect(await everyLead()).toEqual(
          outcomes.flatMap((outcome) => (outcome.kind === 'created' ? [outcome.lead] : [])),
        );
      });

      test('with 5 keys for one contact, 20 times each, one key gets its lead and the others never do', async () => {
        const { contact } = aLead();
        const requests = times(5, () => {
          const lead = aLead({ contact });
          return { lead, keys: keysFor(lead) };
        });

        const outcomes = await Promise.all(
          times(100, (index) => {
            const { lead, keys } = requests[index % 5] as (typeof requests)[number];
            return through(index).createLead({ ...lead, id: newId() }, keys);
          }),
        );

        expect(kinds(outcomes)).toEqual({ created: 1, replayed: 19, 'already-open': 80 });
        const [only, ...more] = await everyLead();
        expect(more).toEqual([]);
        for (const outcome of outcomes) {
          expect('lead' in outcome ? outcome.lead : 'leadId' in outcome && outcome.leadId).toEqual(
            'lead' in outcome ? only : only?.id,
          );
        }
      });
    });
  });
}

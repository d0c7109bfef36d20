import { beforeEach, describe, expect, test } from 'vitest';
import type { Contact } from '../../src/domain/contact.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { Correction } from '../../src/domain/lead-data.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { UpdateLeadOutcome } from '../../src/store/port/lead-changes.ts';
import type { Store } from '../../src/store/store.ts';
import { changeLeadStage } from '../../src/usecases/change-lead.ts';
import { aContactKey, aLead, DAY_MS, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import {
  actionsOn,
  CLOSED_STAGES,
  correctLead,
  describeThroughStores,
  moveLead,
  OPEN_STAGES,
} from './store-actions.ts';

/** The promises of `changeLeadStage`. */
export function changeLeadStageContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, findRevision, everyLead } = actionsOn(() => store);

  describe('changing stages', () => {
    test.each([...OPEN_STAGES, ...CLOSED_STAGES])(
      'a move from %s to any stage changes only the stage; the lead holds its contact while open',
      async (from) => {
        for (const to of [...OPEN_STAGES, ...CLOSED_STAGES].filter((stage) => stage !== from)) {
          const lead = await created(aLead({ sourceId: newId(), note: 'stays' }));
          const before = from === 'new' ? lead : await moved(lead, from);

          const outcome = await moveLead(store, lead, to, { now: plus(before.updatedAt, 5) });

          const expected = { ...lead, stage: to, updatedAt: plus(before.updatedAt, 5) };
          expect(outcome).toEqual({ kind: 'changed', lead: expected, revision: await findRevision(lead) });
          expect(await store.findLead(lead.studioId, lead.id)).toEqual(expected);
          const rival = aLead({ contact: lead.contact });
          expect(await store.createLead(rival, keysFor(rival))).toEqual(
            OPEN_STAGES.includes(to) ? { kind: 'already-open', leadId: lead.id } : { kind: 'created', lead: rival },
          );
        }
      },
    );

    test('moving a lead to its own stage writes nothing', async () => {
      for (const stage of [...OPEN_STAGES, ...CLOSED_STAGES]) {
        const lead = await created();
        const before = stage === 'new' ? lead : await moved(lead, stage);

        const outcome = await moveLead(store, lead, stage, { now: plus(before.updatedAt, DAY_MS) });

        expect(outcome).toEqual({ kind: 'unchanged', lead: before, revision: await findRevision(lead) });
        expect(await store.findLead(lead.studioId, lead.id)).toEqual(before);
      }
    });

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

    test('a move between closed stages does not take the contact from another lead', async () => {
      const first = await created();
      await moved(first, 'won');
      const second = await created(aLead({ contact: first.contact }));

      await moved(first, 'lost');

      const third = aLead({ contact: first.contact });
      expect(await store.createLead(third, keysFor(third))).toEqual({ kind: 'already-open', leadId: second.id });
    });

    // @proves mongodb-18
    test.each(OPEN_STAGES)('reopening to %s is refused while another lead holds the contact', async (stage) => {
      const first = await created();
      const closed = await moved(first, 'lost');
      const second = await created(aLead({ contact: first.contact }));

      const outcome = await moveLead(store, first, stage, { now: plus(closed.updatedAt, DAY_MS) });

      expect(outcome).toEqual({ kind: 'already-open', leadId: second.id });
      expect(await everyLead()).toEqual([second, closed]);
      // The second lead still has the contact: closing it frees the contact for the first.
      await moved(second, 'won');
      await moved(first, stage);
    });

    // @proves leads-33
    test('a move that expects an outdated updatedAt is stale and writes nothing', async () => {
      const lead = await created();
      const now = await moved(lead, 'contacted', { expectedUpdatedAt: lead.updatedAt });

      for (const stage of ['won', 'contacted', 'new'] as const) {
        expect(await moveLead(store, lead, stage, { expectedUpdatedAt: lead.updatedAt })).toEqual({ kind: 'stale' });
      }

      expect(await store.findLead(lead.studioId, lead.id)).toEqual(now);
      expect(await store.listAuditEvents(lead.studioId, lead.id)).toHaveLength(1);
      await moved(now, 'won', { expectedUpdatedAt: now.updatedAt });
    });

    // @proves leads-33
    test('only one of 20 moves that expect the same updatedAt succeeds, through two stores', async () => {
      const lead = await created();
      const stores = [store, await opened().another()];

      const outcomes = await Promise.all(
        times(20, (index) =>
          moveLead(stores[index % 2] as Store, lead, index < 10 ? 'won' : 'lost', {
            expectedUpdatedAt: lead.updatedAt,
          }),
        ),
      );

      expect(outcomes.filter(({ kind }) => kind === 'stale')).toHaveLength(19);
      expect(outcomes).toContainEqual({
        kind: 'changed',
        lead: await store.findLead(lead.studioId, lead.id),
        revision: await findRevision(lead),
      });
    });

    test("an unknown lead or another studio's lead cannot be moved, and nothing is written", async () => {
      const lead = await created();

      expect(await moveLead(store, { ...lead, id: newId() }, 'won')).toEqual({ kind: 'not-found' });
      expect(await moveLead(store, { ...lead, studioId: 'studio-2' }, 'won')).toEqual({ kind: 'not-found' });
      expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
    });
  });
}

/** The promises of `updateLead`. */
export function updateLeadContract(opened: () => OpenedStore): void {
  // @proves leads-8
  describe('updating leads', () => {
    let store: Store;
    beforeEach(() => {
      store = opened().store;
    });
    const { created, moved, corrected, findRevision } = actionsOn(() => store);

    const anEmail = (): Contact => ({ type: 'email', value: `${newId()}@example.org` });

    /** Creates a lead for a contact; returns the id of the open lead that holds the contact, or `created`. */
    async function findHolder(contact: Contact): Promise<string> {
      const lead = aLead({ contact });
      const outcome = await store.createLead(lead, keysFor(lead));
      return outcome.kind === 'already-open' ? outcome.leadId : outcome.kind;
    }

    const found = ({ studioId, id }: Lead) => store.findLead(studioId, id);
    const listEvents = ({ studioId, id }: Lead) => store.listAuditEvents(studioId, id);
    const foundBy = async (...names: readonly string[]) =>
      (await store.findLeadsOfContact(STUDIO_ID, names.map(aContactKey))).leads.map(({ id }) => id);

    test.each<[string, Correction]>([
      ['name', { displayName: 'Augusta Ada King' }],
      ['contact', { contact: { type: 'phone', value: '+49 30 1234567' } }],
      ['source', { sourceId: newId() }],
      ['note', { note: 'Moved away.' }],
      ['source, to none', { sourceId: null }],
      ['note, to none', { note: null }],
      ['all fields', { displayName: 'Eda', contact: anEmail(), sourceId: newId(), note: 'New.' }],
    ])('an update changes nothing but the corrected fields: %s', async (_, correction) => {
      const lead = await created(aLead({ sourceId: newId(), note: 'Calls back.' }));
      const neighbour = await created();

      const outcome = await correctLead(store, lead, correction, { now: plus(lead.updatedAt, 5) });

      const expected = { ...lead, ...correction, updatedAt: plus(lead.updatedAt, 5) };
      expect(outcome).toEqual({ kind: 'changed', lead: expected, revision: await findRevision(lead) });
      expect(await found(lead)).toEqual(expected);
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toEqual([neighbour, expected]);
    });

    test('an update to the current values writes nothing', async () => {
      const lead = await created(aLead({ note: 'same' }));
      const { displayName, contact, sourceId, note } = lead;
      const revision = await findRevision(lead);

      for (const correction of [{}, { note }, { displayName, contact: { ...contact }, sourceId, note }]) {
        expect(await correctLead(store, lead, correction)).toEqual({ kind: 'unchanged', lead, revision });
      }

      expect(await found(lead)).toEqual(lead);
      expect(await listEvents(lead)).toEqual([]);
    });

    test('an update that expects an outdated updatedAt is stale and writes nothing', async () => {
      const lead = await created();
      const now = await corrected(lead, { note: 'first' }, { expectedUpdatedAt: lead.updatedAt });

      for (const note of ['second', 'first']) {
        expect(await correctLead(store, lead, { note }, { expectedUpdatedAt: lead.updatedAt })).toEqual({
          kind: 'stale',
        });
      }

      expect(await found(lead)).toEqual(now);
      expect(await listEvents(lead)).toHaveLength(1);
      expect(await correctLead(store, lead, { note: 'second' }, { expectedUpdatedAt: now.updatedAt })).toMatchObject({
        kind: 'changed',
      });
    });

    test("an unknown lead or another studio's lead cannot be updated, and nothing is written", async () => {
      const lead = await created();

      expect(await correctLead(store, { ...lead, id: newId() }, { note: 'x' })).toEqual({ kind: 'not-found' });
      expect(await correctLead(store, { ...lead, studioId: 'studio-2' }, { note: 'x' })).toEqual({ kind: 'not-found' });
      expect(await found(lead)).toEqual(lead);
    });

    describe('the contact', () => {
      test('a new contact of an open lead frees the former one and is taken itself', async () => {
        const lead = await created();
        const contact = anEmail();

        await corrected(lead, { contact });

        expect(await findHolder(contact)).toBe(lead.id);
        expect(await findHolder(lead.contact)).toBe('created');
      });

      test("a contact of another open lead is refused with that lead's id, and nothing is written", async () => {
        const [lead, other] = [await created(), await created()];

        const outcome = await correctLead(store, lead, { contact: other.contact, note: 'x' });

        expect(outcome).toEqual({ kind: 'already-open', leadId: other.id });
        expect(await found(lead)).toEqual(lead);
        expect(await listEvents(lead)).toEqual([]);
        expect(await findHolder(lead.contact)).toBe(lead.id);
        expect(await findHolder(other.contact)).toBe(other.id);
      });

      test('a new contact gets exactly the given keys, including ones the lead already has', async () => {
        const lead = aLead();
        await created(lead, keysFor(lead, { contactKeys: [aContactKey('a'), aContactKey('b')] }));
        const contact = anEmail();

        const keys = {
          contactKeys: [aContactKey('c'), aContactKey('b')],
          regionCode: 'DE',
        } as const;
        await corrected(lead, { contact }, { keys });

        for (const name of ['c', 'b']) expect(await foundBy(name)).toEqual([lead.id]);
        expect(await foundBy('a')).toEqual([]);
        const another = aLead();
        await created(another, keysFor(another, { contactKeys: [aContactKey('a')] }));
      });

      test.each<[string, Correction]>([
        ['other fields', { note: 'x' }],
        ['the contact that it has', {}],
      ])('a lead that gets %s keeps its keys', async (_, correction) => {
        const lead = aLead();
        await created(lead, keysFor(lead, { contactKeys: [aContactKey('a')] }));
        const keys = keysFor(lead, { contactKeys: [aContactKey('b')] });

        await corrected(lead, { displayName: 'Eda', contact: lead.contact, ...correction }, { keys });

        expect(await foundBy('a')).toEqual([lead.id]);
        expect(await foundBy('b')).toEqual([]);
      });

      test.each(['won', 'lost'] as const)('a new contact of a %s lead takes and frees no contact', async (stage) => {
        const closed = await moved(await created(), stage);
        const [former, other] = [await created(aLead({ contact: closed.contact })), await created()];

        const now = await corrected(closed, { contact: other.contact });

        expect(await found(closed)).toEqual(now);
        expect(await findHolder(closed.contact)).toBe(former.id);
        expect(await findHolder(other.contact)).toBe(other.id);
        expect(await moveLead(store, now, 'new')).toEqual({ kind: 'already-open', leadId: other.id });
      });

      test('a lead reopened during a correction holds the corrected contact', async () => {
        const closed = await moved(await created(), 'lost');
        const contact = anEmail();
        const disturbed: Store = {
          ...store,
          async findLead(...ids) {
            const lead = await store.findLead(...ids);
            await correctLead(store, closed, { contact });
            return lead;
          },
        };

        const command = { studioId: closed.studioId, leadId: closed.id, stage: 'new' } as const;
        const { lead: opened } = await changeLeadStage({ store: disturbed, clock: () => NOW }, command);

        expect(opened).toMatchObject({ contact, stage: 'new' });
        expect(await findHolder(contact)).toBe(closed.id);
        expect(await findHolder(closed.contact)).toBe('created');
      });
    });

    describe('replays after a correction', () => {
      test('a replay returns the original data after corrections, even after a restart', async () => {
        const lead = aLead({ sourceId: newId(), note: 'As I said.' });
        const keys = keysFor(lead);
        await created(lead, keys);
        const once = await corrected(lead, { displayName: 'Eda', contact: anEmail() });
        const twice = await corrected(once, { displayName: 'Ida', sourceId: null, note: null });
        await created(aLead({ contact: lead.contact }));

        store = await opened().reopen();
        const { displayName, sourceId, note } = lead;
        const original = { ...twice, displayName, sourceId, note };
        expect(await store.createLead({ ...lead, id: newId() }, keys)).toEqual({ kind: 'replayed', lead: original });
        expect(await store.findLeadByIdempotencyKey(STUDIO_ID, keys.idempotencyKey)).toEqual({
          lead: original,
          fingerprint: keys.fingerprint,
        });
        expect(await found(lead)).toEqual(twice);
      });
    });

    test('the audit event of an update names the changed fields in order, without values', async () => {
      const lead = await created();
      const once = await corrected(lead, { note: 'Moved.', displayName: 'Eda' }, { memberId: 'member-2' });
      const all = { note: null, sourceId: newId(), contact: anEmail(), displayName: 'Ida' };
      const twice = await corrected(once, all);

      const event = {
        studioId: STUDIO_ID,
        leadId: lead.id,
        caller: null,
        callId: null,
        apiKeyId: null,
        action: 'lead-updated',
        from: null,
      };
      expect(await listEvents(lead)).toEqual([
        { ...event, memberId: null, time: twice.updatedAt, to: 'displayName,contact,sourceId,note' },
        { ...event, memberId: 'member-2', time: once.updatedAt, to: 'displayName,note' },
      ]);
    });

    describeThroughStores('concurrently, ', opened, (through) => {
      const changedLeads = (outcomes: readonly UpdateLeadOutcome[]) =>
        outcomes.flatMap((outcome) => (outcome.kind === 'changed' ? [outcome.lead] : []));

      test('20 concurrent updates of one lead are all written, each with its own time and event', async () => {
        const lead = await created();

        const outcomes = await Promise.all(
          times(20, (index) =>
            correctLead(through(index), lead, { note: `note ${index}` }, { memberId: `m-${index}` }),
          ),
        );

        const leads = changedLeads(outcomes).sort((a, b) => a.updatedAt.getTime() - b.updatedAt.getTime());
        expect(new Set(leads.map(({ updatedAt }) => updatedAt.getTime())).size).toBe(20);
        expect(await found(lead)).toEqual(leads.at(-1));
        const actors = leads.map(({ note }) => note?.replace('note ', 'm-'));
        expect((await listEvents(lead)).map(({ memberId }) => memberId)).toEqual(actors.toReversed());
      });

      test('exactly one of a concurrent creation, reopening and correction of a contact succeeds', async () => {
        const contact = anEmail();
        const closed = await moved(await created(aLead({ contact })), 'lost');
        const other = await created();

        const outcomes = await Promise.all(
          times(30, (index): Promise<{ readonly kind: string }> => {
            const rival = aLead({ contact });
            return (
              [
                () => through(index).createLead(rival, keysFor(rival)),
                () => moveLead(through(index), closed, 'new'),
                () => correctLead(through(index), other, { contact }),
              ][index % 3] as () => Promise<{ readonly kind: string }>
            )();
          }),
        );

        const open = (await store.listLeads(STUDIO_ID, null, 100)).records.filter(
          (lead) => lead.contact.value === contact.value && lead.stage === 'new',
        );
        expect(open).toHaveLength(1);
        const writes = ['created', 'changed', 'updated'];
        expect(outcomes.filter(({ kind }) => writes.includes(kind))).toMatchObject([{ lead: { id: open[0]?.id } }]);
      });
    });
  });
}

import { beforeEach, describe, expect, test } from 'vitest';
import { isCanonicalUuid } from '../../common/rules/field-rules.ts';
import type { Contact } from '../../src/domain/contact.ts';
import { type EnquiryWithId, MAX_ENQUIRIES, MAX_ENQUIRY_BYTES, MAX_ENQUIRY_KEYS } from '../../src/domain/enquiry.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { TEXT_FIELDS } from '../../src/domain/lead-data.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aContactKey,
  aLead,
  aStudio,
  BY,
  DAY_MS,
  HARD_TEXTS,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type Damage, type OpenedStore, tryEach } from './opened-store.ts';
import { acknowledgeIn, actionsOn, changesIn, describeThroughStores } from './store-actions.ts';

/** The promises of `createLead` about enquiries, which store the data of refused creations. */
export function enquiryContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves leads-32
  describe('enquiries', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created, moved, corrected } = actionsOn(() => store);

    /** Sends another creation for the contact of a lead, with a new key unless one is given. */
    const ask = (lead: Lead, data: Partial<Lead>, idempotencyKey = newId(), at = store, contactKeys?: string[]) => {
      const again = { ...aLead({ studioId: lead.studioId, contact: lead.contact }), ...data };
      const keys = keysFor(again, { idempotencyKey, ...(contactKeys && { contactKeys }) });
      return at.createLead(again, keys, { keepsEnquiry: true });
    };
    const refused = async (
      lead: Lead,
      ...asked: Parameters<typeof ask> extends [unknown, ...infer Rest] ? Rest : never
    ) => expect(await ask(lead, ...asked)).toEqual({ kind: 'already-open', leadId: lead.id });
    const listEnquiries = async ({ studioId, id }: Lead): Promise<readonly EnquiryWithId[]> =>
      (await store.findLead(studioId, id))?.enquiries ?? [];
    const listNotes = async (lead: Lead) => (await listEnquiries(lead)).map(({ note }) => note);
    const findChange = async (lead: Lead) => (await changesIn(store)).find((each) => each.lead.id === lead.id);

    test('a refused creation is stored as an enquiry of the open lead and enters the feed', async () => {
      const lead = await created(aLead({ sourceId: newId(), note: 'Monday?' }));
      const before = await changesIn(store, 1);
      await acknowledgeIn(store, before);
      const createdAt = plus(lead.createdAt, 5000);
      const texts = Object.fromEntries(TEXT_FIELDS.map((field) => [field, `Another ${field}`]));
      const data = { ...texts, sourceId: newId() };

      await refused(lead, { ...data, createdAt });

      const enquired = { ...lead, enquiries: [{ id: expect.any(String), time: createdAt, ...data }] };
      expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(enquired);
      expect((await store.walkLeads(STUDIO_ID, null, 10)).records).toEqual([enquired]);
      const change = await findChange(lead);
      expect(change).toEqual({
        lead: enquired,
        revision: expect.any(Number),
        since: createdAt,
        kinds: [{ kind: 'enquired', time: createdAt }],
        attempts: 0,
      });
      expect(change?.revision).toBeGreaterThan(before[0]?.revision as number);
      // Lists of many leads omit enquiries.
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toEqual([lead]);
      const { leads } = await store.findLeadsOfContact(STUDIO_ID, keysFor(lead).contactKeys);
      expect(leads).toEqual([lead]);
      expect(await store.listAuditEvents(STUDIO_ID, lead.id)).toEqual([]);
      store = await opened().reopen();
      expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(enquired);
    });

    test('stores every text of an enquiry unchanged', async () => {
      const lead = await created();
      for (const note of Object.values(HARD_TEXTS)) await refused(lead, { displayName: note, note });

      expect(await listNotes(lead)).toEqual(Object.values(HARD_TEXTS));
    });

    test('stores no enquiry unless asked to, and none for any other outcome', async () => {
      const lead = aLead();
      const keys = keysFor(lead);
      await created(lead, keys);
      const before = await findChange(lead);
      const rival = aLead({ contact: lead.contact, note: 'an import' });
      expect(await store.createLead(rival, keysFor(rival))).toMatchObject({ kind: 'already-open' });
      expect(await store.createLead({ ...lead, id: newId() }, keys, { keepsEnquiry: true })).toMatchObject({
        kind: 'replayed',
      });
      expect(await ask(lead, { note: 'other data' }, keys.idempotencyKey)).toEqual({ kind: 'idempotency-conflict' });
      const closed = await ask(lead, { stage: 'won', note: 'an imported sale' });
      expect(closed).toMatchObject({ kind: 'created' });

      expect(await findChange(lead)).toEqual(before);
    });

    test('stores one enquiry for each idempotency key, however often it is repeated', async () => {
      const lead = await created();
      const key = newId();
      await refused(lead, { note: 'first' }, key);
      const after = await findChange(lead);
      await refused(lead, { note: 'first' }, key);
      await refused(lead, { note: 'other' }, key);
      expect(await findChange(lead)).toEqual(after);
      await refused(lead, { note: 'of another key' });
      await refused(lead, { note: 'first' }, key);

      expect(await listNotes(lead)).toEqual(['first', 'of another key']);
    });

    test('does not store an enquiry that repeats the lead or the enquiry before', async () => {
      const lead = await created(aLead({ note: 'as created' }));
      const before = await findChange(lead);
      await refused(lead, { note: 'as created' });
      expect(await findChange(lead)).toEqual(before);
      for (const note of ['one', 'one', 'as created', 'two', 'one']) await refused(lead, { note });
      expect(await listNotes(lead)).toEqual(['one', 'two', 'one']);
      await corrected(lead, { note: 'one and two' });
      await refused(lead, { note: 'one and two' });
      await refused(lead, { note: 'as created' });

      expect(await listNotes(lead)).toEqual(['one', 'two', 'one', 'as created']);
    });

    // @proves leads-41
    test("an enquiry keeps its contact as typed unless it is exactly the lead's contact", async () => {
      const lead = aLead({ contact: { type: 'email', value: 'ada@example.org' } });
      await created(lead, keysFor(lead, { contactKeys: [aContactKey('a'), aContactKey('b')] }));
      const typed: readonly Contact[] = [
        { type: 'email', value: 'Ada@Example.org' },
        { type: 'phone', value: '+49 30 1234567' },
        lead.contact,
      ];
      const keys = { contactKeys: [aContactKey('b'), aContactKey('c')] };
      const askBy = async (contact: Contact, note: string | null) => {
        const again = aLead({ contact, note });
        expect(await store.createLead(again, keysFor(again, keys), { keepsEnquiry: true })).toEqual({
          kind: 'already-open',
          leadId: lead.id,
        });
      };
      for (const contact of typed) await askBy(contact, 'more');
      // Each differs from the previous enquiry only in its contact.
      for (const contact of typed.toReversed()) await askBy(contact, 'more');
      await askBy(lead.contact, lead.note);

      const [spelled, byPhone] = typed;
      const contacts = async () => (await listEnquiries(lead)).map(({ contact }) => contact);
      expect(await contacts()).toEqual([spelled, byPhone, undefined, byPhone, spelled]);
      store = await opened().reopen();
      await corrected(lead, { contact: { type: 'email', value: 'corrected@example.org' } });
      expect(await contacts()).toEqual([spelled, byPhone, undefined, byPhone, spelled]);
      await store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: plus(NOW, DAY_MS) });
      expect(await contacts()).toEqual([]);
    });

    // @proves leads-41 bounds-80
    test(`stores the newest ${MAX_ENQUIRIES} enquiries of a lead, and still recognises older keys`, async () => {
      const [lead, other] = [await created(), await created()];
      const listIds = async (of: Lead) => (await listEnquiries(of)).map(({ id }) => id);
      const keys = times(MAX_ENQUIRIES + 5, () => newId());
      const seen = new Map<string, string | undefined>();
      for (const [index, key] of keys.entries()) {
        // All have one time, so that times do not tell them apart.
        await refused(lead, { note: `${index}`, createdAt: NOW }, key);
        if (index % 10 !== 9 && index < MAX_ENQUIRIES - 1) continue;
        const kept = await listEnquiries(lead);
        for (const { id, note } of kept) expect(seen.get(id) ?? note).toBe(note);
        for (const { id, note } of kept) seen.set(id, note ?? undefined);
      }
      expect(seen.size).toBe(keys.length);
      const expected = times(MAX_ENQUIRIES, (index) => `${index + 5}`);
      expect(await listNotes(lead)).toEqual(expected);
      await refused(lead, { note: 'the first key again' }, keys[0]);
      expect(await listNotes(lead)).toEqual(expected);
      for (const key of keys.slice(0, 3)) await refused(other, { note: 'elsewhere', createdAt: NOW }, key);
      const before = [...(await listIds(lead)), ...(await listIds(other))];
      expect(new Set(before).size).toBe(before.length);
      for (const id of before) expect(id).toSatisfy(isCanonicalUuid);
      store = await opened().reopen();
      expect([...(await listIds(lead)), ...(await listIds(other))]).toEqual(before);
    });

    // @proves leads-41
    test("an enquiry's contact finds the lead even after a correction or a reopening with other keys", async () => {
      const lead = aLead();
      await created(lead, keysFor(lead, { contactKeys: [aContactKey('own'), aContactKey('shared')] }));
      await ask(lead, { contact: { type: 'phone', value: '030 1234567' } }, newId(), store, [aContactKey('shared')]);
      const found = async () => {
        const some = [undefined, 'former'].map((former) =>
          store.findLeadsOfContact(STUDIO_ID, [aContactKey('shared')], former as 'former' | undefined),
        );
        return [...new Set((await Promise.all(some)).flatMap(({ leads }) => leads.map(({ id }) => id)))];
      };
      await moved(lead, 'lost', { keys: keysFor(lead, { contactKeys: [aContactKey('later')] }) });
      expect(await found()).toEqual([lead.id]);
      await moved(lead, 'new', { keys: keysFor(lead, { contactKeys: [aContactKey('later')] }) });

      expect(await found()).toEqual([lead.id]);
      expect((await store.findLeadsOfContact(STUDIO_ID, [aContactKey('shared')])).leads).toEqual([]);
      await corrected(lead, { contact: { type: 'email', value: 'corrected@example.org' } });
      expect(await found()).toEqual([lead.id]);
    });

    // @proves bounds-81
    test(`enquiries of a lead have at most ${MAX_ENQUIRY_BYTES} bytes; the oldest are dropped`, async () => {
      const lead = await created();
      for (const index of times(12, (each) => each))
        await refused(lead, { note: `${index}${'\u{1f600}'.repeat(1990)}` });

      const kept = await listEnquiries(lead);
      expect(kept.map(({ note }) => Number.parseInt(note ?? '', 10))).toEqual([8, 9, 10, 11]);
      expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(MAX_ENQUIRY_BYTES);
    });

    // @proves bounds-82
    test(`recognises the newest ${MAX_ENQUIRY_KEYS} enquiry keys; an older one may be stored again`, async () => {
      const lead = await created();
      const [oldest, second, newest] = [newId(), newId(), newId()];
      for (const key of [oldest, second]) await refused(lead, { note: key }, key);
      // In batches, because each call has a deadline.
      for (let left = MAX_ENQUIRY_KEYS - 2; left > 0; left -= 50)
        await Promise.all(times(Math.min(left, 50), () => refused(lead, { note: newId() })));
      await refused(lead, { note: 'newest' }, newest);

      await refused(lead, { note: 'known' }, second);
      expect((await listNotes(lead)).at(-1)).toBe('newest');
      await refused(lead, { note: 'forgotten' }, oldest);
      expect((await listNotes(lead)).at(-1)).toBe('forgotten');
    });

    test('enquiries survive corrections, moves and closing, and never show in a replay', async () => {
      const lead = aLead({ note: 'as created' });
      const keys = keysFor(lead);
      await created(lead, keys);
      await refused(lead, { note: 'before' });
      const replay = () => store.createLead({ ...lead, id: newId() }, keys);
      expect(await replay()).toEqual({ kind: 'replayed', lead });
      const after = await corrected(lead, { note: 'corrected', displayName: 'Ada King' });
      expect(after.enquiries).toBeUndefined();
      await refused(lead, { note: 'after' });
      await moved(lead, 'contacted');
      const won = await moved(lead, 'won');

      expect(await listNotes(lead)).toEqual(['before', 'after']);
      const { displayName, note, updatedAt } = won;
      expect([displayName, note]).toEqual(['Ada King', 'corrected']);
      expect(await replay()).toEqual({ kind: 'replayed', lead: { ...lead, stage: 'won', updatedAt } });
    });

    test('a closed or erased lead takes no more enquiries, and erasure deletes them', async () => {
      const lead = await created();
      await refused(lead, { note: 'kept' });
      await moved(lead, 'lost');
      const next = aLead({ contact: lead.contact, note: 'new lead' });
      expect(await store.createLead(next, keysFor(next), { keepsEnquiry: true })).toMatchObject({ kind: 'created' });
      await refused(next, { note: 'at the new one' });
      expect(await listNotes(lead)).toEqual(['kept']);

      await store.eraseLead({ studioId: STUDIO_ID, leadId: next.id, memberId: null, now: NOW });

      expect((await findChange(next))?.lead).not.toHaveProperty('enquiries');
      expect(await ask(next, { note: 'once more' })).toMatchObject({ kind: 'created' });
      await store.eraseLead({ studioId: STUDIO_ID, leadId: next.id, memberId: null, now: NOW });
      expect(await store.findLead(STUDIO_ID, next.id)).toBeNull();
    });

    describeThroughStores('', opened, (through) => {
      test('stores each of many concurrent enquiries once, through any process and however often', async () => {
        const lead = await created();
        const keys = times(20, () => newId());

        const outcomes = await Promise.all(
          times(60, (index) => ask(lead, { note: `${index % 20}` }, keys[index % 20], through(index))),
        );

        expect(new Set(outcomes.map((each) => JSON.stringify(each)))).toEqual(
          new Set([JSON.stringify({ kind: 'already-open', leadId: lead.id })]),
        );
        expect((await listNotes(lead)).toSorted()).toEqual(times(20, (index) => `${index}`).toSorted());
      });
    });

    // @proves limits-1
    test('an unreadable lead stores no enquiry, but still blocks its contact', () =>
      tryEach(opened(), damages, ['lead', 'original'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        if (damage.kind === 'original') await corrected(lead, { note: 'once' });
        await opened().damage(damage, lead);

        await refused(lead, { note: 'again' });

        expect(
          await store.findLead(studioId, lead.id).then(
            (found) => found?.enquiries,
            () => undefined,
          ),
        ).toBeUndefined();
      }));

    test('unreadable enquiries are left out and block no others', () =>
      tryEach(opened(), damages, ['enquiries', 'pending change'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        await refused(lead, { note: 'lost' });
        await opened().damage(damage, lead);
        const remaining = damage.kind === 'pending change' ? ['lost'] : [];
        expect(await listNotes(lead)).toEqual(remaining);
        expect((await store.walkLeads(studioId, null, 10)).records).toHaveLength(1);

        await refused(lead, { note: 'again' });

        expect(await listNotes(lead)).toEqual([...remaining, 'again']);
        expect((await findChange(lead))?.kinds).toContainEqual(expect.objectContaining({ kind: 'enquired' }));
      }));
  });
}

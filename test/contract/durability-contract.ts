import { beforeEach, describe, expect, test } from 'vitest';
import { BOUNDS } from '../../common/rules/field-rules.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { TEXT_FIELDS } from '../../src/domain/lead-data.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aLead,
  aLeadSource,
  anApiKey,
  aStudio,
  BY,
  HARD_TEXTS,
  keysFor,
  NOW,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { READS, WRITES } from './every-call.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, keysIn, leadsIn, sourcesIn } from './store-actions.ts';

/** Returns the first `length` code points of a text. */
const cut = (text: string, length: number): string => [...text].slice(0, length).join('');

/** The promises about stored text, reopening and closing. */
export function durabilityContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created } = actionsOn(() => store);

  describe('text', () => {
    test('text is stored and returned unchanged', async () => {
      const leadFields = TEXT_FIELDS.filter((field) => field !== 'sourceId');
      const texts = [...Object.values(HARD_TEXTS), '🦉'.repeat(2000), '語'.repeat(2000)];
      const names = texts.map((text) => cut(text, BOUNDS.name.max));
      await store.putStudio(aStudio(), BY);
      const leads: Lead[] = [];
      for (const text of texts) {
        const contact = { type: 'phone', value: cut(text, BOUNDS.phone.max) } as const;
        const data = Object.fromEntries(leadFields.map((field) => [field, cut(text, BOUNDS[field].max)]));
        // The leads are closed, because some of their contacts compare as equal.
        leads.push(await created(aLead({ ...data, contact, stage: 'lost' })));
      }
      const sources = names.map((name) => aLeadSource({ name }));
      for (const source of sources) await store.putLeadSource(source, BY);
      const keys = names.map((name) => anApiKey({ name }));
      for (const key of keys) expect(await store.createApiKey(key, NOW)).toBe(true);

      const reopened = await opened().reopen();

      expect(await leadsIn(reopened, STUDIO_ID, null, 100)).toEqual(leads.toReversed());
      expect(await sourcesIn(reopened, STUDIO_ID)).toEqual(sources);
      expect(await keysIn(reopened, STUDIO_ID)).toEqual(keys.toReversed());
    });
  });

  describe('restarting and closing', () => {
    test('closing waits for writes in flight', async () => {
      const another = await opened().another();
      const leads = times(20, () => aLead());
      const writes = leads.map((lead) => store.createLead(lead, keysFor(lead)));

      await store.close();

      expect(await Promise.all(writes)).toEqual(leads.map((lead) => ({ kind: 'created', lead })));
      expect(await leadsIn(another, STUDIO_ID, null, 100)).toEqual(leads.toReversed());
    });

    test('closing a store twice does not affect other stores of the same data', async () => {
      const another = await opened().another();
      await store.close();
      await store.close();

      await expect(another.check()).resolves.toBeUndefined();
    });

    test('a closed store rejects every call as unavailable', async () => {
      await store.close();

      for (const { name, call } of [...READS, ...WRITES]) {
        await expect(call(store), name).rejects.toBeInstanceOf(StoreUnavailable);
      }
    });
  });
}

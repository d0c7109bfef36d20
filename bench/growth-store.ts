import { openStore } from '../src/store/open-store.ts';
import { aLead } from '../test/support/builders.ts';
import { type Access, expect } from './growth-access.ts';
import type { LoadedDatabase } from './growth-database.ts';
import { BUSY, PAGE, someLead } from './growth-leads.ts';
import { atTheEnd } from './processes.ts';

/** Calls a database through the store port, in this process. */
export async function accessStore({ url, leads }: LoadedDatabase): Promise<Access> {
  const store = await openStore(url);
  atTheEnd(() => store.close());
  return {
    leads,
    create(count) {
      const batch = Array.from({ length: count }, () => someLead(BUSY));
      return async () => {
        const outcomes = await Promise.all(batch.map(({ lead, claims }) => store.createLead(lead, claims)));
        return () => {
          expect(
            outcomes.every(({ kind }) => kind === 'created'),
            outcomes,
          );
          leads.created(batch.map(({ lead }) => lead.id));
        };
      };
    },
    replay({ lead, claims }) {
      const again = aLead({ studioId: BUSY, contact: lead.contact });
      return async () => {
        const outcome = await store.createLead(again, claims);
        return () => expect(outcome.kind === 'replayed' && outcome.lead.id === lead.id, outcome);
      };
    },
    read: (id) => async () => {
      const lead = await store.findLead(BUSY, id);
      return () => expect(lead?.id === id, lead);
    },
    list:
      ({ studioId, after, first, isLast }) =>
      async () => {
        const { records, next } = await store.listLeads(studioId, after, PAGE);
        const isWhole = records.length === PAGE && (next === null) === isLast;
        return () => expect(records[0]?.id === first && isWhole, records);
      },
    cpuTimeUs: () => Number.NaN,
    close: () => store.close(),
  };
}

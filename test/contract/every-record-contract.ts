import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { examineRecords } from '../../operator/doctor/examine-records.ts';
import { Notes } from '../../operator/doctor/finding.ts';
import { readDatabase } from '../../src/store/open-store.ts';
import { everyRecord } from '../../src/usecases/every-record.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aLoggedRequest,
  anApiKey,
  aStudio,
  BY,
  claimsOf,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore, tryEach } from './opened-store.ts';
import { moveLead } from './store-actions.ts';

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

/** Leaves a record readable, or is an event that no range of times includes. */
const isHarmless = ({ kind, value }: Damage): boolean => {
  const shown = inspect(value).slice(0, 100);
  return (kind === 'key' && /leads\.export/.test(shown)) || (kind === 'event' && !/studio-sold/.test(shown));
};

/** The promises of `lead-intake doctor --records`. */
export function everyRecordContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  const notesOf = async () => {
    const notes = new Notes('records');
    await examineRecords(notes, opened().databaseUrl, () => {});
    return notes.findings;
  };

  // @proves limits-12
  describe('doctor --records', () => {
    test('names each record that cannot be read, and nothing of what is in it', { timeout: 120_000 }, async () => {
      const { store, damage, databaseUrl } = opened();
      /** Creates a record of a kind, unless the studio has one, and returns its id. */
      async function make(kind: Damage['kind'], studioId: string): Promise<string> {
        const lead = aLead({ studioId, displayName: 'Mary Canary' });
        const key = anApiKey({ studioId });
        const source = aLeadSource({ studioId });
        const request = aLoggedRequest({ studioId });
        const name = `consumer-of-${studioId}`;
        if (kind === 'lead') await store.createLead(lead, claimsOf(lead));
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
      expect(inspect(await notesOf(), { maxStringLength: null })).not.toMatch(/canary|@|xxx/i);
    });

    test('counts the records of a kind, and names ten of them', async () => {
      await opened().store.putStudio(aStudio(), BY);
      const leads = times(12, () => aLead());
      await opened().makeLeads(...leads);
      await opened().damage(emptyName(damages), ...leads.slice(1));

      expect(await notesOf()).toEqual([
        {
          what: 'records',
          verdict: 'fault',
          says: expect.stringMatching(/^include 11 leads that cannot be read: (?:[\w-]+\/[\w-]{36}, ){10}…\. Correct/),
        },
      ]);
    });

    test('finds nothing while leads are created, closed and erased', async () => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      let isEnding = false;
      const change = async () => {
        while (!isEnding) {
          const lead = aLead();
          await store.createLead(lead, claimsOf(lead));
          await moveLead(store, lead, 'won');
          const erasure = { studioId: lead.studioId, leadId: lead.id, memberId: null, now: plus(NOW, 1) };
          await store.eraseLead(erasure);
        }
      };
      const changing = Promise.all(times(4, change));
      const found = [];
      for (let reads = 0; reads < 5; reads += 1) found.push(...(await notesOf()));
      isEnding = true;
      await changing;

      expect(found.map(({ verdict }) => verdict)).toEqual(times(5, () => 'ok'));
    });
  });
}

import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { examine } from '../../operator/doctor/examine.ts';
import { aConsumer, aLead, aLeadSource, aLoggedRequest, anApiKey, BY, claimsOf, NOW } from '../support/builders.ts';
import { run } from '../support/processes.ts';
import { type Damage, type OpenedStore, tryEach } from './opened-store.ts';
import { correctLead, moveLead } from './store-actions.ts';

/** What a database is changed by, by hand, and the faults of it. */
export type Damaged<Change> = readonly [change: Change, ...faults: readonly RegExp[]];

/** Returns the faults that `doctor core --whole-database` finds, its warnings apart. */
export async function faultsIn(databaseUrl: string): Promise<string[]> {
  for (let tries = 1; ; tries += 1) {
    const findings = await examine(['core'], { DATABASE_URL: databaseUrl }, () => {});
    const faults = findings.filter(({ verdict }) => verdict === 'fault').map(({ what, says }) => `${what} ${says}`);
    // As a server does that is busy with other suites.
    if (tries === 10 || !faults.some((each) => each.includes('does not answer'))) return faults;
  }
}

/** Expects that these faults are found, and no others; in any order. */
export function expectFaults(found: readonly string[], faults: readonly RegExp[]): void {
  const missed = faults.filter((fault) => !found.some((text) => fault.test(text)));
  const others = found.filter((text) => !faults.some((fault) => fault.test(text)));
  expect({ missed, others, count: found.length }).toEqual({ missed: [], others: [], count: faults.length });
}

/** Inspects a database for some seconds while another process changes it at random, and then once more; nothing may be found. */
export async function expectNoFaultsBesideChanges(databaseUrl: string, ms: number): Promise<void> {
  const changing = run('test/contract/change-at-random.ts', { args: [databaseUrl] });
  await changing.printed(/changes began/);
  for (const until = performance.now() + ms; performance.now() < until; )
    expect(await faultsIn(databaseUrl)).toEqual([]);
  changing.child.kill('SIGTERM');
  expect({ status: await changing.ended(), output: changing.output() }).toMatchObject({
    status: 0,
    output: expect.stringMatching(/\b[1-9]\d+ changes done\n$/),
  });
  expect(await faultsIn(databaseUrl)).toEqual([]);
}

/** Damages after which a record can be read nevertheless, or which are of what this release only keeps: by kind, and a pattern of the value. */
const HARMLESS: Partial<Record<Damage['kind'], RegExp>> = {
  claim: /contactRule|rule_/,
  region: /./,
  key: /leads\.export/,
  'part of a mark': /sold/,
  'mark of 1.0': /./,
  delivery: /sold/,
};

/** Whatever a record has that this release would not write, the inspection names it, and says nothing of what it has. */
export function damageContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves limits-12
  describe('an inspection', () => {
    test('finds each record that cannot be read, and shows nothing of what is in it', {
      timeout: 240_000,
    }, async () => {
      const { store, damage, inspect: look } = opened();
      await store.createConsumer(aConsumer({ name: 'all' }), BY);
      await store.raiseEpoch(NOW, NOW, BY);
      const kinds = [...new Set(damages.map(({ kind }) => kind))];
      const tried: (readonly [damage: Damage, where: string])[] = [];
      // Making deliveries mends marks.
      const inOrder = damages.toSorted((a, b) => Number(b.kind === 'delivery') - Number(a.kind === 'delivery'));
      await tryEach(opened(), inOrder, kinds, async (each, studioId) => {
        const lead = aLead({ studioId, displayName: 'Mary Canary', note: 'a canary' });
        await store.createLead(lead, claimsOf(lead));
        if (each.kind === 'original' || each.kind === 'enquiries')
          await correctLead(store, lead, { note: 'another canary' });
        if (each.kind === 'lead with events') await moveLead(store, lead, 'contacted');
        const [key, source, request] = [
          anApiKey({ studioId }),
          aLeadSource({ studioId }),
          aLoggedRequest({ studioId }),
        ];
        await store.createApiKey(key, NOW);
        await store.putLeadSource(source, BY);
        await store.recordRequests([request]);
        if (each.kind === 'delivery') while (!(await store.distributeLeadChanges()));
        const name = `named-${tried.length}`;
        if (each.kind === 'consumer')
          expect(await store.createConsumer(aConsumer({ name }), BY)).toMatchObject({ kind: 'created' });
        const ids: Partial<Record<Damage['kind'], string>> = {
          key: key.id,
          'key with events': key.id,
          studio: studioId,
          region: studioId,
          event: studioId,
          member: 'member-1',
          source: source.id,
          consumer: name,
          request: request.id,
        };
        await damage(each, { studioId, id: ids[each.kind] ?? lead.id });
        tried.push([each, { consumer: name, epoch: 'epochs' }[each.kind as string] ?? studioId]);
      });

      const found: string[] = [];
      const { damages: shown } = await look(({ wrong }) =>
        found.push(...wrong.map(({ fault, record }) => `${fault.what}: ${record}.`)),
      );

      expect(inspect([found, shown], { depth: 9, maxArrayLength: null })).not.toMatch(/canary|@|xxx/i);
      const named = (where: string) => found.some((text) => new RegExp(`\\b${where}\\b(?!-)`).test(text));
      const isHarmless = ({ kind, field, value }: Damage) =>
        HARMLESS[kind]?.test(`${field} ${inspect(value).slice(0, 200)}`) ?? false;
      const wrong = tried.filter(([each, where]) => named(where) === isHarmless(each));
      expect(wrong.map(([each, where]) => `${where}: ${inspect(each).slice(0, 200)}`)).toEqual([]);
    });
  });
}

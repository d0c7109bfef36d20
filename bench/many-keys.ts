import { systemClock } from '../src/domain/clock.ts';
import { newId } from '../src/domain/new-id.ts';
import { openStore } from '../src/store/open-store.ts';
import { createApiKey } from '../src/usecases/manage-api-keys.ts';
import { aLead, aLeadSource, aMember, aStudio, BY, claimsOf, DAY_MS, plus, times } from '../test/support/builders.ts';
import { captureFor, type KeyOfStudio } from './lead-requests.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section } from './report.ts';
import { type Driven, rateRatios, type Series } from './rounds.ts';
import { type Surroundings, startProductWithKeys } from './targets.ts';
import type { Scenario } from './workload.ts';

/** How many studios send their leads through one gateway. */
const STUDIOS = 20_000;

/** As many leads as a page of theirs shows. */
const LEADS_EACH = 5;

/** How many studios are written at once: their records share a transaction. */
const CHUNK = 500;

/** What part of the rate with one key the product is to reach with all of them. */
const MIN_RATIO_TO_ONE_KEY = 0.85;

/** What is measured: rows by their names. */
const MEASURED: readonly { readonly scenario: Scenario; readonly name: string }[] = [
  { scenario: 'create', name: 'create' },
  { scenario: 'list', name: `list of ${LEADS_EACH}` },
];

/** How many scenarios are driven, and how many targets each. */
export const KEY_LOADS = 2 * MEASURED.length;

/** Measures the product with the keys of many studios, evenly, against one of them alone. */
export async function measureManyKeys(
  surroundings: Surroundings,
  drive: (scenario: Scenario, driven: readonly Driven[]) => Promise<Series[]>,
): Promise<Pick<Section, 'rows' | 'goals'>> {
  const [one, all] = await startProductWithKeys(writeStudios, LEADS_EACH, surroundings);
  const rows: Section['rows'] = [];
  const goals: Section['goals'] = [];
  for (const { scenario, name } of MEASURED) {
    const measured = await drive(scenario, [{ target: one }, { target: all }]);
    rows.push(...rowsOf(name, measured, ''));
    const [ofOne, ofAll] = measured as [Series, Series];
    const about = `${name} with ${STUDIOS.toLocaleString('en')} keys, of one key`;
    goals.push({ about, measured: rateRatios(ofAll, ofOne), atLeast: MIN_RATIO_TO_ONE_KEY });
  }
  return { rows, goals };
}

/** Writes studios with an owner, a source, a key and some leads each. */
async function writeStudios(databaseUrl: string): Promise<KeyOfStudio[]> {
  const store = await openStore(databaseUrl);
  const deps = { store, clock: systemClock, newId };
  const progress = showProgress('studios', STUDIOS);
  const keys: KeyOfStudio[] = [];
  while (keys.length < STUDIOS) {
    const made = await Promise.all(times(CHUNK, (index) => writeStudio(`studio-${keys.length + index}`)));
    keys.push(...made);
    progress(keys.length);
  }
  await store.close();
  return keys;

  async function writeStudio(studioId: string): Promise<KeyOfStudio> {
    const [owner, source] = [aMember({ studioId }), aLeadSource({ studioId })];
    const leads = times(LEADS_EACH, () => aLead({ studioId, ...captureFor(crypto.randomUUID(), source.id) }));
    // All are written in the order in which they are asked for.
    await Promise.all([
      store.putStudio(aStudio({ id: studioId }), BY),
      store.putMember(owner),
      store.putLeadSource(source),
      ...leads.map((lead) => store.createLead(lead, claimsOf(lead))),
    ]);
    const { secret } = await createApiKey(deps, {
      studioId,
      memberId: owner.id,
      name: 'Website',
      scopes: ['leads.create', 'leads.read'],
      expiresAt: plus(deps.clock(), DAY_MS),
    });
    return { secret, sourceId: source.id };
  }
}

import type { Store } from '../src/store/store.ts';
import { aLead, claimsOf, times } from '../test/support/builders.ts';
import { captureFor, type KeyOfStudio } from './lead-requests.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section } from './report.ts';
import { type Driven, rateRatios, type Series } from './rounds.ts';
import { createStudioWithKey, withStore } from './studio-with-key.ts';
import { type Surroundings, startProductWithKeys } from './targets.ts';
import type { Scenario } from './workload.ts';

/** The number of studios that share a gateway. */
const STUDIOS = 20_000;

/** The leads of each studio, and the page size. */
const LEADS_EACH = 5;

/** The number of studios that are created concurrently, and share transactions. */
const CHUNK = 500;

/** The minimum rate with all keys, relative to one key. */
const MIN_RATIO_TO_ONE_KEY = 0.85;

/** The scenarios, with the names of their rows. */
const MEASURED: readonly { readonly scenario: Scenario; readonly name: string }[] = [
  { scenario: 'create', name: 'create' },
  { scenario: 'list', name: `list of ${LEADS_EACH}` },
];

/** The number of scenarios times targets. */
export const KEY_LOADS = 2 * MEASURED.length;

/** Measures the product with the keys of many studios against one of them. */
export async function measureManyKeys(
  surroundings: Surroundings,
  drive: (scenario: Scenario, driven: readonly Driven[]) => Promise<Series[]>,
): Promise<Pick<Section, 'rows' | 'goals'>> {
  const write = (databaseUrl: string) => withStore(databaseUrl, writeStudios);
  const [one, all] = await startProductWithKeys(write, LEADS_EACH, surroundings);
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

/** Creates all studios with a key and some leads each. */
async function writeStudios(store: Store): Promise<KeyOfStudio[]> {
  const progress = showProgress('studios', STUDIOS);
  const keys: KeyOfStudio[] = [];
  while (keys.length < STUDIOS) {
    keys.push(...(await Promise.all(times(CHUNK, (index) => writeStudio(store, `studio-${keys.length + index}`)))));
    progress(keys.length);
  }
  return keys;
}

async function writeStudio(store: Store, studioId: string): Promise<KeyOfStudio> {
  const key = await createStudioWithKey(store, studioId);
  const leads = times(LEADS_EACH, () => aLead({ studioId, ...captureFor(crypto.randomUUID(), key.sourceId) }));
  await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
  return key;
}

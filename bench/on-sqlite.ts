import { CROWD_SCENARIOS, CROWDS, measureCrowds } from './crowds.ts';
import { KEY_LOADS, measureManyKeys } from './many-keys.ts';
import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section } from './report.ts';
import { type Driven, loadsOf, measure, medianOf, rateRatios, ratios, type Series } from './rounds.ts';
import {
  type RunningTarget,
  type Surroundings,
  startFloor,
  startLauncher,
  startLogged,
  startProduct,
  startTraced,
} from './targets.ts';
import { SCENARIOS, type Scenario } from './workload.ts';

/** What part of the floor's rate the product is to reach. */
const MIN_RATIO_TO_FLOOR: Readonly<Record<Scenario, number>> = { get: 1, list: 1.5, replay: 0.7, create: 1 };

/** What part of the product's rate it is to reach when `npm start` runs it. */
const MIN_RATIO_TO_PRODUCT = 0.95;

/** At what part of its highest rate of creations a target is asked for its latency, and how high that may be, of the floor's. */
const STEADY = 0.7;
const MAX_P99_RATIO_TO_FLOOR = 1;

/** Measures the product, also as `npm start` runs it and with everything told, against the floor. */
export async function measureOnSqlite(surroundings: Surroundings, options: Options): Promise<Section> {
  const { parts, places, rounds } = options;
  const floor = await startFloor(surroundings);
  const product = places.includes('product') ? await startProduct(surroundings) : undefined;
  const started = places.includes('start') ? await startLauncher(surroundings) : undefined;
  const observed = places.includes('observed')
    ? [await startLogged(surroundings), await startTraced(surroundings)]
    : [];
  const targets = [floor, product, started, ...observed].filter((target) => target !== undefined);
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));
  const steadyTargets = parts.includes('p99') ? [floor, product].filter((target) => target !== undefined) : [];

  const crowdTargets = parts.includes('crowds') ? [floor, product].filter((target) => target !== undefined) : [];
  const crowdLoads = CROWDS.length * CROWD_SCENARIOS.length * crowdTargets.length;
  const keyLoads = product && parts.includes('keys') ? KEY_LOADS : 0;
  const loads = (scenarios.length * targets.length + steadyTargets.length + crowdLoads + keyLoads) * loadsOf(rounds);
  const progress = showProgress('SQLite', loads);
  let done = 0;
  const drive = (scenario: Scenario, driven: readonly Driven[], connections = surroundings.connections) =>
    measure(scenario, driven, rounds, connections, () => {
      done += 1;
      progress(done);
    });

  const section: Section = { title: 'SQLite', base: floor.name, rows: [], goals: [] };
  const startedRatios: number[] = [];
  const steady: Driven[] = [];
  for (const scenario of scenarios) {
    const all = await drive(scenario, targets.map(asFastAsItCan));
    const [ofFloor, ofProduct, ofStarted] = [floor, product, started].map((target) => seriesOf(target, all));
    section.rows.push(...rowsOf(scenario, all, floor.name));
    if (ofProduct && ofFloor) {
      const measured = rateRatios(ofProduct, ofFloor);
      section.goals.push({ about: `${scenario}, of the floor`, measured, atLeast: MIN_RATIO_TO_FLOOR[scenario] });
    }
    if (ofStarted && ofProduct) startedRatios.push(...rateRatios(ofStarted, ofProduct));
    if (scenario === 'create') steady.push(...steadyTargets.map((target) => atSteadyRate(target, all)));
  }
  if (startedRatios.length > 0) {
    const about = '`npm start`, of the product started by hand';
    section.goals.push({ about, measured: startedRatios, atLeast: MIN_RATIO_TO_PRODUCT });
  }

  const latencies = await drive('create', steady);
  const name = `create at ${STEADY * 100} %`;
  for (const series of latencies) section.rows.push({ name, series });
  const [steadyFloor, steadyProduct] = [floor, product].map((target) => seriesOf(target, latencies));
  if (steadyFloor && steadyProduct) {
    const measured = ratios(steadyProduct, steadyFloor, ({ p99Ms }) => p99Ms);
    section.goals.push({
      about: `p99 of ${name} of its rate, of the floor's`,
      measured,
      atMost: MAX_P99_RATIO_TO_FLOOR,
    });
  }

  for (const crowd of crowdTargets.length > 0 ? await measureCrowds(crowdTargets, drive) : []) {
    const { name: about, all, atLeast } = crowd;
    section.rows.push(...rowsOf(about, all, floor.name));
    const [ofFloor, ofProduct] = [floor, product].map((target) => seriesOf(target, all));
    if (atLeast !== undefined && ofProduct && ofFloor) {
      section.goals.push({ about: `${about}, of the floor`, measured: rateRatios(ofProduct, ofFloor), atLeast });
    }
  }

  if (keyLoads > 0) {
    const { rows, goals } = await measureManyKeys(surroundings, drive);
    section.rows.push(...rows);
    section.goals.push(...goals);
  }
  return section;
}

const asFastAsItCan = (target: RunningTarget): Driven => ({ target });

function atSteadyRate(target: RunningTarget, creations: readonly Series[]): Driven {
  const series = seriesOf(target, creations);
  if (!series) throw new Error(`the rate of ${target.name} is not known`);
  return { target, ratePerSecond: STEADY * medianOf(series, ({ ratePerSecond }) => ratePerSecond) };
}

function seriesOf(target: RunningTarget | undefined, all: readonly Series[]): Series | undefined {
  return all.find((series) => series.target === target?.name);
}

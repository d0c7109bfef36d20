import { KEY_LOADS, measureManyKeys } from './many-keys.ts';
import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section, seriesOf } from './report.ts';
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

/** The minimum rate of the product, relative to the floor's. */
const MIN_RATIO_TO_FLOOR: Readonly<Record<Scenario, number>> = { get: 1, list: 1.5, replay: 0.7, create: 1 };

/** The minimum rate under `npm start`, relative to the product's. */
const MIN_RATIO_TO_PRODUCT = 0.95;

/** The part of its highest rate at which the latency of creations is measured, and the maximum p99, relative to the floor's. */
const STEADY = 0.7;
const MAX_P99_RATIO_TO_FLOOR = 1;

/** Further numbers of connections. Most websites have a few, for which there are minimum rates, relative to the floor's. */
const CROWDS = [1, 4, 256];
const FEW = 4;
const MIN_RATIO_TO_FLOOR_WITH_FEW: readonly (readonly [Scenario, number])[] = [
  ['get', 0.35],
  ['list', 0.8],
  ['create', 0.8],
];

/** Measures the product, also under `npm start` and with logs, metrics and traces, against the floor. */
export async function measureOnSqlite(surroundings: Surroundings, options: Options): Promise<Section> {
  const { parts, places, rounds } = options;
  const floor = await startFloor(surroundings);
  const product = places.includes('product') ? await startProduct(surroundings) : undefined;
  const launched = places.includes('start') ? await startLauncher(surroundings) : undefined;
  const observed = places.includes('observed')
    ? [await startLogged(surroundings), await startTraced(surroundings)]
    : [];
  const targets = present([floor, product, launched, ...observed]);
  const pair = present([floor, product]);
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));
  const steadyTargets = parts.includes('p99') ? pair : [];
  const crowds = parts.includes('crowds') ? MIN_RATIO_TO_FLOOR_WITH_FEW : [];
  const hasKeys = product !== undefined && parts.includes('keys');

  const loads =
    scenarios.length * targets.length +
    steadyTargets.length +
    crowds.length * CROWDS.length * pair.length +
    (hasKeys ? KEY_LOADS : 0);
  const step = showProgress('SQLite', loads * loadsOf(rounds));
  const drive = (scenario: Scenario, driven: readonly Driven[], connections = surroundings.connections) =>
    measure(scenario, driven, rounds, connections, step);

  const section: Section = { title: 'SQLite', base: floor.name, rows: [], goals: [] };
  /** Adds the rows of a scenario, and the goal of the product's rate. */
  const add = (name: string, all: readonly Series[], atLeast?: number) => {
    section.rows.push(...rowsOf(name, all, floor.name));
    const [ofFloor, ofProduct] = [seriesOf(floor, all), seriesOf(product, all)];
    if (!ofFloor || !ofProduct || atLeast === undefined) return;
    section.goals.push({ about: `${name}, of the floor`, measured: rateRatios(ofProduct, ofFloor), atLeast });
  };

  const launchedRatios: number[] = [];
  const steady: Driven[] = [];
  for (const scenario of scenarios) {
    const all = await drive(scenario, asFastAsPossible(targets));
    add(scenario, all, MIN_RATIO_TO_FLOOR[scenario]);
    const [ofProduct, ofLaunched] = [seriesOf(product, all), seriesOf(launched, all)];
    if (ofLaunched && ofProduct) launchedRatios.push(...rateRatios(ofLaunched, ofProduct));
    if (scenario === 'create') steady.push(...steadyTargets.map((target) => atSteadyRate(target, all)));
  }
  if (launchedRatios.length > 0) {
    const about = '`npm start`, of the product started by hand';
    section.goals.push({ about, measured: launchedRatios, atLeast: MIN_RATIO_TO_PRODUCT });
  }

  const latencies = await drive('create', steady);
  const name = `create at ${STEADY * 100} %`;
  for (const series of latencies) section.rows.push({ name, series });
  const [steadyFloor, steadyProduct] = [seriesOf(floor, latencies), seriesOf(product, latencies)];
  if (steadyFloor && steadyProduct) {
    const measured = ratios(steadyProduct, steadyFloor, ({ p99Ms }) => p99Ms);
    const about = `p99 of ${name} of its rate, of the floor's`;
    section.goals.push({ about, measured, atMost: MAX_P99_RATIO_TO_FLOOR });
  }

  for (const [scenario, atLeast] of crowds) {
    for (const connections of CROWDS) {
      const all = await drive(scenario, asFastAsPossible(pair), connections);
      const name = `${scenario}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`;
      add(name, all, connections === FEW ? atLeast : undefined);
    }
  }

  if (hasKeys) {
    const { rows, goals } = await measureManyKeys(surroundings, drive);
    section.rows.push(...rows);
    section.goals.push(...goals);
  }
  return section;
}

const present = (targets: readonly (RunningTarget | undefined)[]): RunningTarget[] =>
  targets.filter((target) => target !== undefined);

const asFastAsPossible = (targets: readonly RunningTarget[]): Driven[] => targets.map((target) => ({ target }));

function atSteadyRate(target: RunningTarget, creations: readonly Series[]): Driven {
  const series = seriesOf(target, creations);
  if (!series) throw new Error(`the rate of ${target.name} was not measured`);
  return { target, ratePerSecond: STEADY * medianOf(series, ({ ratePerSecond }) => ratePerSecond) };
}

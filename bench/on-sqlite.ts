import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import type { Goal, Row, Section } from './report.ts';
import { type Driven, loadsOf, measure, medianOf, rateRatios, type Series } from './rounds.ts';
import { type Surroundings, startFloor, startLauncher, startProduct } from './targets.ts';
import { SCENARIOS, type Scenario } from './workload.ts';

/** What part of the floor's rate the product is to reach. */
const LEAST_OF_FLOOR: Readonly<Partial<Record<Scenario, number>>> = { get: 0.4, list: 0.6, create: 0.35 };

/** What part of the product's rate it is to reach when `npm start` runs it. */
const LEAST_OF_PRODUCT = 0.95;

/** At what part of its highest rate of creations a target is asked for its latency, and how high that may be. */
const STEADY = 0.7;
const MOST_P99_MS = 50;

/** Measures the product, and the product as `npm start` runs it, against the floor. */
export async function measureOnSqlite(surroundings: Surroundings, options: Options): Promise<Section> {
  const { parts, places, rounds } = options;
  const floor = await startFloor(surroundings);
  const product = places.includes('product') ? await startProduct(surroundings) : undefined;
  const started = places.includes('start') ? await startLauncher(surroundings) : undefined;
  const targets = [floor, product, started].filter((target) => target !== undefined);
  const steadyTargets = parts.includes('p99') ? [floor, product].filter((target) => target !== undefined) : [];
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));

  const loads = (scenarios.length * targets.length + steadyTargets.length) * loadsOf(rounds);
  const progress = showProgress('SQLite', loads);
  let done = 0;
  const drive = (scenario: Scenario, driven: readonly Driven[]) =>
    measure(scenario, driven, rounds, surroundings.connections, () => {
      done += 1;
      progress(done);
    });

  const rows: Row[] = [];
  const goals: Goal[] = [];
  const ofProduct: number[] = [];
  let creations: readonly Series[] = [];
  for (const scenario of scenarios) {
    const all = await drive(
      scenario,
      targets.map((target) => ({ target })),
    );
    const [floors, products, starteds] = [floor, product, started].map((target) =>
      all.find((series) => series.target === target?.name),
    );
    rows.push(...all.map((series) => ({ name: scenario, series, base: series === floors ? undefined : floors })));
    const least = LEAST_OF_FLOOR[scenario];
    if (least !== undefined && products && floors) {
      goals.push({ about: `${scenario}, of the floor`, measured: rateRatios(products, floors), atLeast: least });
    }
    if (products && starteds) ofProduct.push(...rateRatios(starteds, products));
    if (scenario === 'create') creations = all;
  }
  if (ofProduct.length > 0) {
    goals.push({ about: '`npm start`, of the product by hand', measured: ofProduct, atLeast: LEAST_OF_PRODUCT });
  }

  if (steadyTargets.length > 0) {
    const all = await drive(
      'create',
      steadyTargets.map((target) => {
        const peak = creations.find((series) => series.target === target.name);
        return {
          target,
          ratePerSecond: STEADY * (peak ? medianOf(peak, ({ ratePerSecond }) => ratePerSecond) : Number.NaN),
        };
      }),
    );
    rows.push(...all.map((series) => ({ name: `create at ${STEADY * 100} %`, series })));
    const latencies = all.find((series) => series.target === product?.name)?.rounds.map(({ p99Ms }) => p99Ms);
    if (latencies) {
      goals.push({
        about: `p99 of the product's creations at ${STEADY * 100} % of their rate`,
        measured: latencies,
        atMost: MOST_P99_MS,
        unit: ' ms',
      });
    }
  }
  return { title: 'SQLite', base: 'floor', rows, goals };
}

import { serverName } from './mongo-database.ts';
import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section } from './report.ts';
import { loadsOf, measure, rateRatios } from './rounds.ts';
import { type Surroundings, startBareDriver, startProductOnMongo, startTwoGateways } from './targets.ts';
import { SCENARIOS, type Scenario } from './workload.ts';

/** What part of the bare driver's rate the product is to reach: of inserts, of finds by key, of pages; a get of any. */
const MIN_RATIO_TO_DRIVER: Readonly<Partial<Record<Scenario, number>>> = { create: 1.4, replay: 0.8, list: 1 };

/** Measures the product on MongoDB and Redis, also with two gateways, against the bare driver. */
export async function measureOnMongo(
  mongoUrl: string,
  redisUrl: string,
  surroundings: Surroundings,
  { parts, rounds }: Options,
): Promise<Section> {
  const product = await startProductOnMongo(mongoUrl, redisUrl, surroundings);
  const several = await startTwoGateways(mongoUrl, redisUrl, surroundings);
  const driver = await startBareDriver(mongoUrl, surroundings);
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));
  const targets = [driver, product, several];

  const loads = scenarios.length * targets.length * loadsOf(rounds);
  const progress = showProgress('MongoDB', loads);
  let done = 0;
  const section: Section = { title: `${await serverName(mongoUrl)} and Redis`, base: driver.name, rows: [], goals: [] };
  for (const scenario of scenarios) {
    const driven = targets.map((target) => ({ target }));
    const all = await measure(scenario, driven, rounds, surroundings.connections, () => {
      done += 1;
      progress(done);
    });
    const base = all.find(({ target }) => target === driver.name);
    section.rows.push(...rowsOf(scenario, all, driver.name));
    const products = all.find(({ target }) => target === product.name);
    const atLeast = MIN_RATIO_TO_DRIVER[scenario];
    if (base && products && atLeast !== undefined) {
      section.goals.push({
        about: `${scenario}, of the ${driver.name}`,
        measured: rateRatios(products, base),
        atLeast,
      });
    }
  }
  return section;
}

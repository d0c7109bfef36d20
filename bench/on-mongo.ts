import { serverName } from './mongo-database.ts';
import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section, seriesOf } from './report.ts';
import { loadsOf, measure, rateRatios } from './rounds.ts';
import { type Surroundings, startBareDriver, startProductOnMongo } from './targets.ts';
import { SCENARIOS, type Scenario } from './workload.ts';

/** The minimum rate of the product, relative to the bare driver's inserts, finds by key and pages. */
const MIN_RATIO_TO_DRIVER: Readonly<Partial<Record<Scenario, number>>> = { create: 1.4, replay: 0.8, list: 1 };

/** Measures the product on MongoDB and Redis against the bare driver. */
export async function measureOnMongo(
  mongoUrl: string,
  redisUrl: string,
  surroundings: Surroundings,
  { parts, rounds }: Options,
): Promise<Section> {
  const product = await startProductOnMongo(mongoUrl, redisUrl, surroundings);
  const driver = await startBareDriver(mongoUrl, surroundings);
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));
  const driven = [{ target: driver }, { target: product }];
  const step = showProgress('MongoDB', scenarios.length * driven.length * loadsOf(rounds));
  const section: Section = { title: `${await serverName(mongoUrl)} and Redis`, base: driver.name, rows: [], goals: [] };
  for (const scenario of scenarios) {
    const all = await measure(scenario, driven, rounds, surroundings.connections, step);
    section.rows.push(...rowsOf(scenario, all, driver.name));
    const [ofDriver, ofProduct] = [seriesOf(driver, all), seriesOf(product, all)];
    const atLeast = MIN_RATIO_TO_DRIVER[scenario];
    if (ofDriver && ofProduct && atLeast !== undefined) {
      const measured = rateRatios(ofProduct, ofDriver);
      section.goals.push({ about: `${scenario}, of the ${driver.name}`, measured, atLeast });
    }
  }
  return section;
}

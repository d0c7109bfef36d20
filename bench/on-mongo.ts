import { serverName } from './mongo-database.ts';
import type { Options } from './options.ts';
import { showProgress } from './progress.ts';
import { rowsOf, type Section } from './report.ts';
import { loadsOf, measure, rateRatios } from './rounds.ts';
import { type Surroundings, startBareDriver, startProductOnMongo } from './targets.ts';
import { SCENARIOS } from './workload.ts';

/** What part of the bare driver's rate of creations the product is to reach. */
const LEAST_OF_DRIVER = 1;

/** Measures the product on MongoDB and Redis, its creations against the bare driver's. */
export async function measureOnMongo(
  mongoUrl: string,
  redisUrl: string,
  surroundings: Surroundings,
  { parts, rounds }: Options,
): Promise<Section> {
  const product = await startProductOnMongo(mongoUrl, redisUrl, surroundings);
  const driver = await startBareDriver(mongoUrl, surroundings);
  const scenarios = SCENARIOS.filter((scenario) => parts.includes(scenario));
  const targetsOf = (scenario: string) => (scenario === 'create' ? [driver, product] : [product]);

  const loads = scenarios.flatMap(targetsOf).length * loadsOf(rounds);
  const progress = showProgress('MongoDB', loads);
  let done = 0;
  const section: Section = { title: `${await serverName(mongoUrl)} and Redis`, base: driver.name, rows: [], goals: [] };
  for (const scenario of scenarios) {
    const driven = targetsOf(scenario).map((target) => ({ target }));
    const all = await measure(scenario, driven, rounds, surroundings.connections, () => {
      done += 1;
      progress(done);
    });
    const base = all.find(({ target }) => target === driver.name);
    section.rows.push(...rowsOf(scenario, all, driver.name));
    const products = all.find(({ target }) => target === product.name);
    if (base && products) {
      const measured = rateRatios(products, base);
      section.goals.push({ about: `create, of ${driver.name}`, measured, atLeast: LEAST_OF_DRIVER });
    }
  }
  return section;
}

import { inspectDatabase } from '../../../src/store/open-store.ts';
import type { Simulation } from '../simulation.ts';

/** Whatever happened, nothing is in the database that cannot be. */
export async function damageViolations({ world }: Simulation): Promise<string[]> {
  const { damages } = await inspectDatabase(world.databaseUrl, () => {});
  return damages.map(({ count, what, records }) => `the database has ${count} ${what}: ${records.join(', ')}`);
}

import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { HealthCheckResponse_ServingStatus as Status } from '../../../proto/gen/health/v1/health_pb.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { databaseFile, isOnSqlite, lasting } from './choices.ts';
import { onMachine } from './faults.ts';
import { findOutcome } from './operations.ts';
import { aScenario } from './scenario.ts';

/** Longer than a core takes to notice, because it checks its files every second; milliseconds. */
const NOTICED_WITHIN_MS = 3000;

/**
 * Moves the files away from a running core, and later puts them back as they were at that moment. The core must not acknowledge
 * writes in between. The folder is a file meanwhile, so commands fail.
 */
export const moveFilesAway = aScenario({
  weight: 0,
  weightOfHours: 4,
  isPossible: isOnSqlite,
  choice: fc.record({ isStopped: fc.boolean(), forMs: lasting(0, 1500) }),
  run: (sim, { isStopped, forMs }) =>
    onMachine(sim, 'the files of the database are moved away', [], async () => {
      const path = databaseFile(sim);
      const [folder, kept, lost] = ['', '.kept', '.lost'].map((end) => dirname(path) + end) as [string, string, string];
      mkdirSync(kept);
      for (const file of [path, `${path}-wal`]) if (existsSync(file)) copyFileSync(file, join(kept, basename(file)));
      renameSync(folder, lost);
      writeFileSync(folder, '');
      await untilNoticed(sim);
      await sleep(forMs);
      const [core] = sim.world.parts;
      await (isStopped ? core?.terminate?.() : core?.kill());
      rmSync(folder);
      renameSync(kept, folder);
      rmSync(lost, { recursive: true });
      await core?.start();
    }),
});

/** Waits until a core reports that it does not serve. */
async function untilNoticed(sim: Simulation): Promise<void> {
  for (const begin = now(); now() < begin + NOTICED_WITHIN_MS; await sleep(25)) {
    const outcome = await findOutcome(sim.crmAt(0).health.check({}, CRM_TIMEOUT));
    if ('answer' in outcome && outcome.answer.status === Status.NOT_SERVING) return;
  }
  sim.history.fail(`a core still serves ${NOTICED_WITHIN_MS} ms after its files were moved away`);
}

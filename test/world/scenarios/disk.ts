import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { onMachine } from './faults.ts';
import { aScenario } from './scenario.ts';

/**
 * How long a full disk may take to show in readiness, which cores and gateways check about once a second;
 * milliseconds.
 */
const READY_NO_MORE_WITHIN_MS = 5000;

/**
 * How long, and by how many concurrent writers, a full disk is written to until it accepts nothing more;
 * milliseconds.
 */
const WRITES_FOR_MS = 4000;
const WRITERS = 4;

/** The disk of the database fills up, and has room again after a while. */
export const fullDisk = aScenario({
  weight: 2,
  choice: fc.record({ forMs: lasting(50, 4000) }),
  isPossible: ({ world }) => world.disk?.kind === 'small',
  run: (sim, { forMs }) =>
    onMachine(sim, `the disk is full for ${forMs} ms`, [], async () => {
      const { disk } = sim.world;
      if (disk?.kind !== 'small') return;
      disk.disk.fill();
      await sleep(forMs);
      const acknowledged = await writeUntilRefused(sim);
      disk.disk.free();
      await sim.untilServed();
      await expectStored(sim, acknowledged);
    }),
});

/** Whether the CRM is refused an unneeded studio; if not, the studio's id is recorded. */
async function isRefused(sim: Simulation, acknowledged: string[]): Promise<boolean> {
  const { directory } = sim.crmAt(0);
  const studio = { id: `studio-of-a-full-disk-${randomUUID()}`, status: StudioStatus.SUSPENDED };
  return directory.putStudio({ studio }, { timeoutMs: 3000 }).then(
    () => {
      acknowledged.push(studio.id);
      return false;
    },
    (error) => ConnectError.from(error).code === Code.Unavailable,
  );
}

/**
 * The files that exist have free space inside, so writes still succeed for a while on a full disk.
 *
 * @returns the studios whose writes were acknowledged
 */
async function writeUntilRefused(sim: Simulation): Promise<string[]> {
  const acknowledged: string[] = [];
  let isOver = false;
  const giveUp = now() + WRITES_FOR_MS;
  const write = async () => {
    while (!isOver && now() < giveUp) isOver = await isRefused(sim, acknowledged);
  };
  await Promise.all(times(WRITERS, write));
  if (isOver) await expectNotReady(sim, acknowledged);
  return acknowledged;
}

/** When writes are refused repeatedly because the disk is full, the service soon reports that it is not ready. */
async function expectNotReady(sim: Simulation, acknowledged: string[]): Promise<void> {
  const isReady = () =>
    fetch(`${sim.world.urls[0]}/readyz`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(2000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let waited = 0; waited < READY_NO_MORE_WITHIN_MS; waited += 250) {
    // A write that succeeds after all was refused for a temporary reason, such as another long write.
    if (!(await isReady()) || !(await isRefused(sim, acknowledged))) return;
    await sleep(250);
  }
  sim.history.fail(
    `the disk is full, all writes were refused, and the gateway is still ready ${READY_NO_MORE_WITHIN_MS} ms later`,
  );
}

/** Writes that were acknowledged on a full disk are stored when it has room again. */
async function expectStored(sim: Simulation, studioIds: readonly string[]): Promise<void> {
  const { directory } = sim.crmAt(0);
  for (const studioId of studioIds) {
    await directory.getStudio({ studioId }, CRM_TIMEOUT).catch((error) => {
      if (ConnectError.from(error).code === Code.NotFound)
        sim.history.fail(`${studioId} was put while the disk was full, and is not there`);
    });
  }
}

const kept = fc.constantFrom(0, 0.1, 0.5, 0.9, 1);

/** The power of the machine fails: a random part of the unsynced changes survives, and all processes end. */
export const powerCut = aScenario({
  weight: 3,
  choice: fc.record({
    after: fc.nat(80),
    of: fc.constantFrom('', '', 'leads.db', 'leads.db-wal'),
    keepsData: kept,
    keepsNames: kept,
    seed: fc.nat(),
  }),
  isPossible: ({ world }) => world.disk?.kind === 'forgetful',
  run: (sim, cut) =>
    onMachine(sim, 'the power fails', ['counts'], async () => {
      const { disk } = sim.world;
      const [everything] = sim.world.parts;
      if (disk?.kind !== 'forgetful' || !everything) return;
      everything.mayEnd?.();
      await disk.disk.failPower(cut);
      // If no further change triggers the failure, it is triggered here.
      const isFailed = await Promise.race([disk.disk.failed().then(() => true), sleep(1500, false)]);
      if (!isFailed) await disk.disk.failPower({ ...cut, after: 0, of: '' });
      await disk.disk.failed();
      await sim.world.commandLine.whileDown(async () => {
        await everything.kill();
        await disk.disk.restorePower();
      });
      await everything.start();
    }),
});

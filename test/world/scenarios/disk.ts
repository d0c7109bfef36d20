import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { now } from '../history.ts';
import { CRM_WAITS_MS, type Life } from '../life.ts';
import { lasting } from './choices.ts';
import { aScenario } from './scenario.ts';
import { onMachine } from './weather.ts';

/** When whoever asks is told so; cores and gateways look about once a second each; milliseconds. */
const READY_NO_MORE_WITHIN_MS = 5000;

/** How long, and by how many at once, a full disk is written to until it takes nothing more; milliseconds. */
const WRITES_FOR_MS = 4000;
const WRITERS = 4;

/** The disk of the database fills, and after a while has room again. */
export const fullDisk = aScenario({
  weight: 2,
  choice: fc.record({ forMs: lasting(50, 4000) }),
  isPossible: ({ world }) => world.disk?.kind === 'small',
  happen: (life, { forMs }) =>
    onMachine(life, `the disk is full for ${forMs} ms`, [], async () => {
      const { disk } = life.world;
      if (disk?.kind !== 'small') return;
      disk.disk.fill();
      await sleep(forMs);
      const acknowledged = await writeUntilRefused(life);
      disk.disk.free();
      await life.untilServed();
      await seeThatTheyAreThere(life, acknowledged);
    }),
});

/** Whether the CRM may put a studio that nobody needs; of the one that it may, the id is kept. */
async function isRefused({ crm }: Life, acknowledged: string[]): Promise<boolean> {
  const { directory } = crm[0] as CoreClients;
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
 * What is written already has files with room in them, so writes go on for a while on a full disk.
 *
 * @returns the studios that were put, as somebody was told
 */
async function writeUntilRefused(life: Life): Promise<string[]> {
  const acknowledged: string[] = [];
  let isOver = false;
  const giveUp = now() + WRITES_FOR_MS;
  const write = async () => {
    while (!isOver && now() < giveUp) isOver = await isRefused(life, acknowledged);
  };
  await Promise.all(times(WRITERS, write));
  if (isOver) await seeThatItIsNotReady(life, acknowledged);
  return acknowledged;
}

/** Whoever is refused one write after the other because the disk is full sees soon that the service is not ready. */
async function seeThatItIsNotReady(life: Life, acknowledged: string[]): Promise<void> {
  const isReady = () =>
    fetch(`${life.world.urls[0]}/readyz`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(2000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let waited = 0; waited < READY_NO_MORE_WITHIN_MS; waited += 250) {
    // What is taken after all was refused for something that passed, such as somebody else's long write.
    if (!(await isReady()) || !(await isRefused(life, acknowledged))) return;
    await sleep(250);
  }
  life.history.breaks(
    `the disk is full, all writes were refused, and the gateway is still ready ${READY_NO_MORE_WITHIN_MS} ms later`,
  );
}

/** What was told to be written on a full disk is there when it has room again. */
async function seeThatTheyAreThere({ crm, history }: Life, studioIds: readonly string[]): Promise<void> {
  const { directory } = crm[0] as CoreClients;
  for (const studioId of studioIds) {
    await directory.getStudio({ studioId }, { timeoutMs: CRM_WAITS_MS }).catch((error) => {
      if (ConnectError.from(error).code === Code.NotFound)
        history.breaks(`${studioId} was put while the disk was full, and is not there`);
    });
  }
}

const kept = fc.constantFrom(0, 0.1, 0.5, 0.9, 1);

/** The power of the machine fails: of what was not synced a part is left, and nothing runs. */
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
  happen: (life, cut) =>
    onMachine(life, 'the power fails', ['counts'], async () => {
      const { disk } = life.world;
      const [everything] = life.world.parts;
      if (disk?.kind !== 'forgetful' || !everything) return;
      everything.mayEnd?.();
      await disk.disk.failPower(cut);
      // Where nothing more is changed it fails by itself.
      const isFailed = await Promise.race([disk.disk.failed().then(() => true), sleep(1500, false)]);
      if (!isFailed) await disk.disk.failPower({ ...cut, after: 0, of: '' });
      await disk.disk.failed();
      await life.world.commandLine.whileDown(async () => {
        await everything.kill();
        await disk.disk.restorePower();
      });
      await everything.start();
    }),
});

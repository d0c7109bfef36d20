import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import type { Life } from '../life.ts';
import { lasting } from './choices.ts';
import { aHappening } from './happening.ts';
import { MACHINE } from './weather.ts';

/** When whoever asks is told so; cores and gateways look about once a second each; milliseconds. */
const READY_NO_MORE_WITHIN_MS = 5000;

/** The disk of the database fills, and after a while has room again. */
export const fullDisk = aHappening({
  weight: 2,
  choice: fc.record({ forMs: lasting(50, 4000) }),
  isPossible: ({ world }) => world.disk?.kind === 'small',
  happen: (life, { forMs }) =>
    life.inTurn(MACHINE, () =>
      life.disturb(`the disk is full for ${forMs} ms`, [], async () => {
        const { disk } = life.world;
        if (disk?.kind !== 'small') return;
        disk.disk.fill();
        await sleep(forMs);
        await lookWhileFull(life);
        disk.disk.free();
      }),
    ),
});

/** Who is refused a write because the disk is full sees soon that the service is not ready. */
async function lookWhileFull({ crm, history, world }: Life): Promise<void> {
  const { directory } = crm[0] as CoreClients;
  const studio = { id: `studio-of-a-full-disk-${randomUUID()}`, status: StudioStatus.SUSPENDED };
  const isRefused = await directory.putStudio({ studio }, { timeoutMs: 3000 }).then(
    () => false,
    (error) => ConnectError.from(error).code === Code.Unavailable,
  );
  if (!isRefused) return;
  const isReady = () =>
    fetch(`${world.urls[0]}/readyz`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(2000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let waited = 0; waited < READY_NO_MORE_WITHIN_MS; waited += 250) {
    if (!(await isReady())) return;
    await sleep(250);
  }
  history.breaks(
    `the disk is full, a write was refused, and the gateway is still ready ${READY_NO_MORE_WITHIN_MS} ms later`,
  );
}

const kept = fc.constantFrom(0, 0.1, 0.5, 0.9, 1);

/** The power of the machine fails: of what was not synced a part is left, and nothing runs. */
export const powerCut = aHappening({
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
    life.inTurn(MACHINE, () =>
      life.disturb('the power fails', ['counts'], async () => {
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
    ),
});

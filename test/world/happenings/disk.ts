import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { lasting } from './choices.ts';
import { aHappening } from './happening.ts';
import { MACHINE } from './weather.ts';

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
        disk.disk.free();
      }),
    ),
});

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

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { failure, isCommand } from '../../support/mongodb.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { lasting } from './choices.ts';
import { aScenario } from './scenario.ts';

/**
 * Inserts fail as a whole, without a result for any document: MongoDB responds like that when it is about to shut
 * down, for example.
 */
export const failInserts = aScenario({
  weight: 1,
  choice: fc.record({ inserts: fc.integer({ min: 1, max: 8 }), forMs: lasting(100, 2000) }),
  isPossible: ({ world }) => world.links.database !== undefined,
  run: (sim, { inserts, forMs }) => {
    const link = sim.world.links.database as TcpProxy;
    return sim.inTurn('link database', () =>
      sim.disturb(`${inserts} inserts within ${forMs} ms fail as a whole`, [], async () => {
        failNext(link, inserts);
        await sleep(forMs);
        link.heal();
      }),
    );
  },
});

function failNext(link: TcpProxy, inserts: number): void {
  link.replyTo(isCommand('insert'), (request) => {
    if (inserts > 1) failNext(link, inserts - 1);
    return failure(request);
  });
}

import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { framed } from '../../security/http2-wire.ts';
import { times } from '../../support/builders.ts';
import { lasting, one, studioAt } from './choices.ts';
import { command } from './operations.ts';
import { aScenario } from './scenario.ts';

const WATCH = '/leadintake.v1.LeadIntakeService/WatchLeadChanges';

/** Adds consumers of the feed that read nothing for a while, in which an operator resends leads. */
export const stallConsumers = aScenario({
  weight: 1,
  choice: fc.record({
    count: fc.constantFrom(1, 1, 20),
    core: fc.nat(1),
    studio: fc.option(fc.nat(3)),
    forMs: lasting(200, 20_000),
  }),
  async run(sim, { count, core, studio, forMs }) {
    const session = connect(one(sim.world.coreUrls, core), { settings: { initialWindowSize: 0 } });
    session.on('error', () => {});
    const authorization = `Bearer ${sim.world.coreToken}`;
    const headers = { ':method': 'POST', ':path': WATCH, 'content-type': 'application/grpc', te: 'trailers' };
    const calls = times(count, () => session.request({ ...headers, authorization }));
    for (const call of calls) call.on('error', () => {}).end(framed(Buffer.alloc(0)));
    await sleep(forMs / 2);
    await command(sim, ['changes', 'resend', ...(studio === null ? [] : [studioAt(sim, studio).id])]);
    await sleep(forMs / 2);
    session.destroy();
  },
});

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { document } from '../../support/documented.ts';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { one } from './choices.ts';
import { aScenario } from './scenario.ts';

/** The longest that a request for status may take without a disturbance; milliseconds. */
const ANSWERED_WITHIN_MS = 5000;

/** A client requests the liveness, the readiness, or the API description of a gateway. */
export const lookFromOutside = aScenario({
  weight: 2,
  choice: fc.record({ url: fc.nat(2), path: fc.constantFrom('/healthz', '/readyz', '/v1/openapi.json') }),
  async run(sim, { url, path }) {
    const address = one(sim.world.urls, url) + path;
    const text = await read(sim, address, path === '/readyz' ? [200, 503] : [200]);
    if (text === undefined || path !== '/v1/openapi.json') return;
    if (!isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(document))))
      sim.history.fail(`${address} describes another API`);
  },
});

/** Returns the response of an address; undefined if there is none, which only a disturbance may cause. */
async function read(sim: Simulation, url: string, expected: readonly number[]): Promise<string | undefined> {
  const begin = now();
  const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  const headers = { connection: 'close' };
  const response = await fetch(url, { headers, signal })
    .then(
      async (response) => ({ status: response.status, text: await response.text() }),
      (error) => ({ status: 0, text: `${error} ${error.cause}` }),
    )
    .catch((error) => ({ status: 0, text: `${error}` }));
  const isUsual = response.status === expected[0];
  sim.history.note('probe', `${url} ${response.status}`, begin);
  if (response.status !== 0 && !expected.includes(response.status))
    sim.history.fail(`${url} is answered with ${response.status} ${response.text}`);
  if (!isUsual && !sim.isDisturbedSince(begin))
    sim.history.fail(`${url} is answered with ${response.status} ${response.text} without a disturbance`);
  return isUsual ? response.text : undefined;
}

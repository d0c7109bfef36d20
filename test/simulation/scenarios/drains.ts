import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { isUnprocessed } from '../../../common/core-connection.ts';
import { HealthCheckResponse_ServingStatus as Status } from '../../../proto/gen/health/v1/health_pb.ts';
import { now, when } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { one } from './choices.ts';
import { asFarAsDefinite } from './definite-outcomes.ts';
import { MACHINE, through } from './faults.ts';
import { findOutcome } from './operations.ts';
import { byFetch, FIRST_PAGE } from './requests.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

/** The time before the end of a drain, and between two requests; milliseconds. */
const MARGIN_MS = 100;
const BETWEEN_MS = 50;

/** How long gateways take to be ready after a fault, which first a core and then a gateway must notice; milliseconds. */
const READY_WITHIN_MS = 5000;

/** How long cores are suspended around the end of a gateway's drain; milliseconds. */
const HELD_MS = 3 * MARGIN_MS;

/**
 * Stops a process gracefully, with a drain, while nothing else fails. Gateways and cores must answer all requests that come
 * before the drain ends, and a consumer of the core's feed must get no error.
 */
export const drain = aScenario({
  weight: 4,
  choice: fc.record({ part: fc.nat(5) }),
  isPossible: ({ drainMs }) => drainMs > 0,
  run: (sim, { part }) =>
    asFarAsDefinite(async () => {
      const { secret } = await makeSeparateStudio(sim);
      await alone(sim, () => stop(sim, part, secret));
    }),
});

/** Runs while nothing else is disturbed. */
const alone = (sim: Simulation, run: () => Promise<void>): Promise<void> =>
  [...Object.keys(sim.world.links).map((name) => `link ${name}`), 'redis', 'replica set', MACHINE].reduce<
    () => Promise<void>
  >((inside, name) => () => sim.inTurn(name, inside), run)();

async function stop(sim: Simulation, part: number, secret: string): Promise<void> {
  const stoppable = sim.world.parts.filter(({ terminate }) => terminate);
  const stopping = one(stoppable, part);
  const loses = stopping.losesCounts ? (['counts'] as const) : [];
  const drain = async (excuseFrom: (ms: number) => void) => {
    await sim.untilServed();
    const core = Number(/core (\d)/.exec(stopping.name)?.[1] ?? 1) - 1;
    const watching = watch(sim, core);
    const begin = now();
    const isStopped = stopping.terminate?.();
    const isOver = () => now() > begin + sim.drainMs - MARGIN_MS;
    const endsAt = begin + sim.drainMs;
    excuseFrom(endsAt - MARGIN_MS);
    const requesting = sim.world.gatewayUrls.map((url) => keepRequesting(sim, url, secret, isOver, endsAt));
    const isCore = stopping.name.startsWith('core');
    const { gatewayUrls } = sim.world;
    const gateway = Number(/gateway (\d)/.exec(stopping.name)?.[1] ?? 1) - 1;
    const meanwhile = isCore
      ? gatewayUrls.map((url) => keepProbing(sim, url, 'ready', isOver))
      : [holdCores(sim), keepProbing(sim, one(gatewayUrls, gateway), 'stopping', isOver)];
    await Promise.all([...requesting, keepCalling(sim, core, isCore, isOver), ...meanwhile]);
    await isStopped;
    if (isCore) await watching.ended;
    else watching.end();
    await stopping.start();
  };
  await sim.disturb(`${stopping.name} drains`, loses, drain, through(stopping.name));
}

/** Sends requests to a gateway, which must answer each, unless a used-up quota holds one beyond the drain. */
async function keepRequesting(
  sim: Simulation,
  url: string,
  secret: string,
  isOver: () => boolean,
  endsAt: number,
): Promise<void> {
  for (; !isOver(); await sleep(BETWEEN_MS)) {
    const begin = now();
    const { status = 0, text = 'no answer' } = (await byFetch(sim, url, secret, FIRST_PAGE)) ?? {};
    const isHeld = now() > endsAt && now() - begin > MARGIN_MS;
    if (![200, 429].includes(status) && !text.includes('nothing was written') && !isHeld)
      sim.history.fail(`${when({ begin, end: now() })}: during a drain a request gets ${status} ${text}`);
  }
}

/** Probes a gateway. It must be unready while it stops, and ready while a core drains, except shortly after a fault. */
async function keepProbing(
  sim: Simulation,
  url: string,
  expected: 'ready' | 'stopping',
  isOver: () => boolean,
): Promise<void> {
  const begin = now();
  const ended = sim.history.of('disturbance').map(({ span }) => span.end);
  const mayBeUnreadyUntil = Math.max(...ended.filter((end) => end <= begin)) + READY_WITHIN_MS;
  for (; !isOver(); await sleep(BETWEEN_MS)) {
    const answer = await fetch(`${url}/readyz`).then(
      async (response) => `${response.status} ${await response.text()}`,
      String,
    );
    const isExpected = expected === 'stopping' ? answer.startsWith('503 ') : answer.startsWith('200 ');
    if (!isExpected && (expected === 'stopping' || now() > mayBeUnreadyUntil))
      return sim.history.fail(`${when({ begin, end: now() })}: a gateway that is ${expected} answers ${answer}`);
  }
}

/** Suspends the cores around the end of a gateway's drain, so that requests are in flight then. */
async function holdCores({ world, drainMs }: Simulation): Promise<void> {
  const cores = world.parts.filter(({ name }) => name.startsWith('core'));
  await sleep(drainMs - 2 * MARGIN_MS);
  for (const core of cores) core.pause();
  await sleep(HELD_MS);
  for (const core of cores) core.resume();
}

/** Calls a core, which must answer each call, and report NOT_SERVING exactly if it stops. */
async function keepCalling(sim: Simulation, core: number, isStopping: boolean, isOver: () => boolean): Promise<void> {
  const { directory, health } = sim.crmAt(core);
  for (; !isOver(); await sleep(BETWEEN_MS)) {
    const begin = now();
    const studioId = sim.studios[0]?.id ?? '';
    const asked = directory.getStudio({ studioId }, CRM_TIMEOUT).then(() => health.check({}, CRM_TIMEOUT));
    const outcome = await findOutcome(asked.then(({ status }) => status));
    const expected = isStopping ? Status.NOT_SERVING : Status.SERVING;
    if (!('answer' in outcome) || outcome.answer !== expected)
      sim.history.fail(`${when({ begin, end: now() })}: during a drain a core answers ${JSON.stringify(outcome)}`);
  }
}

/** Watches the feed of a core until the core ends the call. */
function watch(sim: Simulation, core: number) {
  const over = new AbortController();
  const ended = (async () => {
    try {
      for await (const _ of sim.crmAt(core).leads.watchLeadChanges({}, { signal: over.signal }));
    } catch (error) {
      if (!over.signal.aborted && !isUnprocessed(error))
        sim.history.fail(`a consumer of a core that stops gets ${error}`);
    }
  })();
  return { ended, end: () => over.abort() };
}

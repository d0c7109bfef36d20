import { setTimeout as sleep } from 'node:timers/promises';
import { contradictionsIn } from '../support/contradictions.ts';
import type { Region } from './contacts.ts';
import { readFinalState } from './final-state.ts';
import { type Plan, SCENARIOS } from './plan.ts';
import { answerViolations, shareExcused } from './promises/answers.ts';
import { auditViolations } from './promises/audit.ts';
import { enquiryViolations } from './promises/enquiries.ts';
import { followFeed } from './promises/feed.ts';
import { keyViolations, registerViolations } from './promises/keys.ts';
import { leadViolations } from './promises/leads.ts';
import { outputViolations } from './promises/outputs.ts';
import { quotaViolations } from './promises/quota.ts';
import { timeViolations } from './promises/times.ts';
import { walkViolations } from './promises/walks.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { visitors } from './scenarios/website.ts';
import type { Settings } from './settings.ts';
import { Simulation } from './simulation.ts';
import { formatTrace } from './trace.ts';
import type { World } from './world.ts';

/** The maximum duration of a life besides the delays of its steps, usually and if it is long; milliseconds. */
const ENDS_WITHIN_MS = 150_000;
const LONG_ENDS_WITHIN_MS = 4_200_000;

/** The total delay from which a life is long, and the age of connections in it, as in a deployment; milliseconds. */
const LONG_MS = 600_000;
const LONG_CONNECTION_MS = 300_000;

/** The number of running and waiting disturbances above which no step begins. */
const MAX_IN_TURN = 3;

/** The largest share of a life's requests that may be excused, and the visitors that come until it is reached. */
const MAX_EXCUSED = 1 / 3;
const CALM = { callers: 3, forMs: 300 };

export type StartWorld = (settings: Settings) => Promise<World>;

/** The result of running a plan. */
export interface PlanResult {
  /** A text for every broken promise. */
  readonly violations: readonly string[];
  /** Groups of observations that were too large to check. */
  readonly unknown: readonly string[];
  /** The share of requests that were allowed to fail, because something on their path was disturbed. */
  readonly excused: number;
  /** The actions and observations of each party, in order. */
  readonly trace: string;
}

/**
 * Runs a plan in a new world, and checks all observations against the promises.
 *
 * @param more scenarios that only this world has, by name
 */
export async function runPlan(
  plan: Plan,
  name: string,
  startWorld: StartWorld,
  more: Readonly<Record<string, Scenario>> = {},
): Promise<PlanResult> {
  const { quota, drainMs, logLevel, connectionMs } = plan;
  const delaysMs = plan.steps.reduce((sum, { afterMs }) => sum + afterMs, 0);
  const isLong = delaysMs > LONG_MS;
  const endsWithinMs = delaysMs + (isLong ? LONG_ENDS_WITHIN_MS : ENDS_WITHIN_MS);
  const world = await startWorld({
    QUOTA_LIMIT: `${quota.limit}`,
    ...(quota.studioLimit !== undefined && { QUOTA_STUDIO_LIMIT: `${quota.studioLimit}` }),
    QUOTA_WINDOW_SECONDS: `${quota.windowSeconds}`,
    SHUTDOWN_DRAIN_MS: `${drainMs}`,
    LOG_LEVEL: logLevel,
    CORE_CONNECTION_MAX_AGE_MS: `${isLong ? LONG_CONNECTION_MS : connectionMs}`,
  });
  const sim = new Simulation(world, name, drainMs);
  try {
    await sim.begin().catch((error) => {
      throw new Error(`the simulation cannot begin: ${error}\n${world.outputs().join('\n')}`, { cause: error });
    });
    const run = runSteps(sim, plan, { ...SCENARIOS, ...more }, isLong);
    const isOver = await Promise.race([run.then(() => true), sleep(endsWithinMs, false)]);
    if (!isOver) sim.history.fail(`the simulation has not ended after ${endsWithinMs} ms`);
    const { violations, unknown } = isOver ? await run : { violations: sim.history.violations, unknown: [] };
    return { violations, unknown, excused: shareExcused(sim), trace: formatTrace(sim.history, violations) };
  } finally {
    sim.end();
    await world.stop();
  }
}

/** Sends visitors to the undisturbed service until at most a third of all requests are excused. */
async function sendVisitors(sim: Simulation): Promise<void> {
  await sim.untilServed();
  for (let seed = 0; shareExcused(sim) > MAX_EXCUSED; seed += 1) await visitors.run(sim, { ...CALM, seed });
}

/** Runs the steps of a plan, waits until they end, and checks the observations. */
async function runSteps(
  sim: Simulation,
  { steps, quota }: Plan,
  scenarios: Readonly<Record<string, Scenario>>,
  isLong: boolean,
) {
  const running: Promise<void>[] = [];
  const feed = followFeed(sim, isLong);
  let last: (() => Promise<void>) | undefined;
  for (const { afterMs, name, choice } of steps) {
    if (afterMs > 0) await sleep(afterMs);
    // Otherwise disturbances would queue up, and all requests would end before the second one begins.
    while (sim.inTurnCount > MAX_IN_TURN) await sleep(5);
    const scenario = scenarios[name];
    if (!scenario || scenario.isPossible?.(sim) === false) continue;
    const run = () => scenario.run(sim, choice).catch((error) => sim.history.fail(`${name} fails: ${error.stack}`));
    if (scenario.isLast) last ??= run;
    else running.push(run());
  }
  await Promise.all(running);
  await sendVisitors(sim);
  const finalLeads = await readFinalState(sim);
  const leadChecks = [...finalLeads].map(([studioId, leads]) => {
    const regions = new Set(sim.listPuts(`region of ${studioId}`).map(({ value }) => value as Region));
    return leadViolations(sim.history.events, { studioId, regions: [...regions], leads });
  });
  const historyViolations = [
    ...leadChecks.flatMap(({ violations }) => violations),
    ...enquiryViolations(sim, finalLeads),
    ...walkViolations(sim, finalLeads),
    ...(await feed.violations(finalLeads)),
    ...keyViolations(sim),
    ...registerViolations(sim),
    ...answerViolations(sim),
    ...(await auditViolations(sim, finalLeads)),
    ...timeViolations(sim),
    ...quotaViolations(sim, quota),
  ];
  await last?.();
  const violations = [
    ...historyViolations,
    ...outputViolations(sim),
    ...(await contradictionsIn(sim.world.databaseUrl)),
    ...sim.history.violations,
    ...sim.world.unexpectedEnds,
  ];
  return { violations, unknown: leadChecks.flatMap(({ unknown }) => unknown) };
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Region } from './contacts.ts';
import { lastLook } from './last-look.ts';
import { Life } from './life.ts';
import { makeLongPages } from './long-pages.ts';
import { type Plan, SCENARIOS } from './plan.ts';
import { brokenOfAnswers } from './promises/answers.ts';
import { brokenOfAudit } from './promises/audit.ts';
import { brokenOfExports } from './promises/exports.ts';
import { brokenOfFiles } from './promises/files.ts';
import { brokenOfKeys } from './promises/keys.ts';
import { brokenOfLeads } from './promises/leads.ts';
import { brokenOfLists } from './promises/lists.ts';
import { brokenOfOddRecords } from './promises/odd-records.ts';
import { brokenOfOutputs } from './promises/outputs.ts';
import { brokenOfQuota } from './promises/quota.ts';
import { brokenOfRegisters } from './promises/registers.ts';
import { brokenOfTimes } from './promises/times.ts';
import { stayAtCore } from './scenarios/core-stayers.ts';
import { crowd } from './scenarios/crowds.ts';
import { lastPackets } from './scenarios/packet.ts';
import { stay } from './scenarios/stayers.ts';
import type { Settings } from './settings.ts';
import { recordStarvation } from './starvation.ts';
import { canStay } from './staying.ts';
import { storyOf } from './story.ts';
import type { World } from './world.ts';

/** The maximum duration of a life; milliseconds. */
const OVER_WITHIN_MS = 150_000;

/** The additional time for clients that stay connected for as long as the service allows; milliseconds. */
const STAYS_FOR_MS = 60_000;

/** The number of running and waiting disturbances above which no further step begins. */
const MAX_IN_TURN = 3;

export type StartWorld = (settings: Settings, plan: Plan) => Promise<World>;

/** The result of running a plan. */
export interface Lived {
  /** A text for every broken promise. */
  readonly broken: readonly string[];
  /** Observations that were too many to check. */
  readonly unknown: readonly string[];
  /** What each party did and saw, in order. */
  readonly story: string;
}

/** Runs a plan in a new world, and checks all observations against the promises. */
export async function live(plan: Plan, name: string, startWorld: StartWorld): Promise<Lived> {
  const { quota, drainMs, logLevel } = plan;
  const world = await startWorld(
    {
      QUOTA_LIMIT: `${quota.limit}`,
      QUOTA_WINDOW_SECONDS: `${quota.windowSeconds}`,
      SHUTDOWN_DRAIN_MS: `${drainMs}`,
      LOG_LEVEL: logLevel,
      CORE_REFLECTION: 'yes',
    },
    plan,
  );
  const life = new Life(world, name, drainMs);
  const stopRecording = recordStarvation(life.history, world);
  try {
    await life.begin().catch((error) => {
      throw new Error(`nothing can begin: ${error}\n${world.outputs().join('\n')}`, { cause: error });
    });
    const { broken, unknown } = await Promise.race([lived(life, plan), tooLong(life, plan)]);
    return { broken, unknown, story: storyOf(life.history, broken) };
  } finally {
    stopRecording();
    life.end();
    await world.stop();
  }
}

async function lived(life: Life, { steps, quota, stays }: Plan): Promise<Omit<Lived, 'story'>> {
  const pages = stays && canStay ? await makeLongPages(life) : undefined;
  const happening: Promise<void>[] = pages ? [stayAtCore(life), stay(life, pages).then(() => crowd(life, pages))] : [];
  for (const { afterMs, name, choice } of steps) {
    if (afterMs > 0) await sleep(afterMs);
    // Otherwise disturbances queue up, and all requests end before the second one begins.
    while (life.inTurnCount > MAX_IN_TURN) await sleep(5);
    const happens = SCENARIOS[name];
    if (!happens || happens.isPossible?.(life) === false) continue;
    happening.push(
      happens.happen(life, choice).catch((error) => life.history.breaks(`${name} cannot go on: ${error.stack}`)),
    );
  }
  await Promise.all(happening);
  const atLast = await lastLook(life);
  await lastPackets(life);
  const { events } = life.history;
  const regionsOf = (studioId: string) => [
    ...new Set(life.putsOf(`region of ${studioId}`).map(({ value }) => value as Region)),
  ];
  const ofLeads = [...atLast].map(([studioId, leads]) =>
    brokenOfLeads(events, { studioId, regions: regionsOf(studioId), leads }),
  );
  const broken = [
    ...life.history.broken,
    ...life.world.unexpectedEnds,
    ...ofLeads.flatMap(({ broken }) => broken),
    ...brokenOfLists(life, atLast),
    ...brokenOfExports(life, atLast),
    ...brokenOfKeys(life),
    ...brokenOfRegisters(life),
    ...brokenOfAnswers(life),
    ...(await brokenOfAudit(life, atLast)),
    ...brokenOfTimes(life),
    ...brokenOfQuota(life, quota),
    ...brokenOfOddRecords(life),
    ...brokenOfOutputs(life),
    ...brokenOfFiles(life.world),
  ];
  return { broken, unknown: ofLeads.flatMap(({ unknown }) => unknown) };
}

async function tooLong(life: Life, { stays }: Plan): Promise<Omit<Lived, 'story'>> {
  const withinMs = OVER_WITHIN_MS + (stays ? STAYS_FOR_MS : 0);
  await sleep(withinMs, undefined, { ref: false });
  return { broken: [...life.history.broken, `it is not over after ${withinMs} ms`], unknown: [] };
}

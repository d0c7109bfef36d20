import { randomUUID } from 'node:crypto';
import { drive } from './drive.ts';
import { type LoadedDatabase, requestsTo } from './growth-database.ts';
import { BUSY } from './growth-leads.ts';
import { showProgress } from './progress.ts';
import { number, rowsOf, type Section } from './report.ts';
import { loadsOf, measure, type Rounds, rateRatios, type Series } from './rounds.ts';
import { type RunningTarget, startCoreAndGateway } from './targets.ts';

const FULL: Rounds = { rounds: 5, roundMs: 10_000, warmUpMs: 10_000 };
const QUICK: Rounds = { rounds: 3, roundMs: 2000, warmUpMs: 1000 };

/** Enough to keep a gateway and a core busy. */
const CONNECTIONS = 64;

/** The minimum rate on the large database, relative to the small one. */
const MIN_RATE = 0.8;

/** Creates leads of the busy studio at the highest rate, on each database in turn. */
export async function measureLoad(
  title: string,
  databases: readonly [small: LoadedDatabase, large: LoadedDatabase],
  quick: boolean,
): Promise<Section> {
  const rounds = quick ? QUICK : FULL;
  const targets: RunningTarget[] = [];
  for (const database of databases) targets.push(await productOn(database));
  const step = showProgress('creations at full load', targets.length * loadsOf(rounds));
  const driven = targets.map((target) => ({ target }));
  const [few, many] = (await measure('create', driven, rounds, CONNECTIONS, step)) as [Series, Series];
  return {
    title,
    base: few.target,
    rows: rowsOf('create', [few, many], few.target),
    goals: [
      { about: `${many.target}, of the rate with ${few.target}`, measured: rateRatios(many, few), atLeast: MIN_RATE },
    ],
  };
}

async function productOn(database: LoadedDatabase): Promise<RunningTarget> {
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL: database.url });
  const requests = requestsTo(url, database, BUSY);
  return {
    name: `${number(database.size, 0)} leads`,
    pids,
    drive: (_, pace) => drive(new URL(url), { next: () => requests.creation(randomUUID()), status: 201 }, pace),
  };
}

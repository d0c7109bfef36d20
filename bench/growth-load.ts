import { randomUUID } from 'node:crypto';
import { connectToCore } from '../test/support/core-clients.ts';
import { drive } from './drive.ts';
import type { LoadedDatabase } from './growth-database.ts';
import { BUSY, SOURCE_ID } from './growth-leads.ts';
import { arrangeKey } from './growth-product.ts';
import { LeadRequests } from './lead-requests.ts';
import { showProgress } from './progress.ts';
import { number } from './report.ts';
import { loadsOf, measure, type Rounds, type Series } from './rounds.ts';
import { type RunningTarget, startCoreAndGateway } from './targets.ts';

const FULL: Rounds = { rounds: 5, roundMs: 10_000, warmUpMs: 10_000 };
const QUICK: Rounds = { rounds: 3, roundMs: 2000, warmUpMs: 1000 };

/** As many as keep a gateway and a core busy. */
const CONNECTIONS = 64;

/** Creates leads of the busy studio as fast as that is answered, on each database in turn. */
export async function measureLoad(databases: readonly LoadedDatabase[], quick: boolean): Promise<Series[]> {
  const rounds = quick ? QUICK : FULL;
  const targets: RunningTarget[] = [];
  for (const database of databases) targets.push(await productOn(database));
  const progress = showProgress('creations at full load', targets.length * loadsOf(rounds));
  let done = 0;
  const driven = targets.map((target) => ({ target }));
  return measure('create', driven, rounds, CONNECTIONS, () => progress(++done));
}

async function productOn({ url: databaseUrl, size }: LoadedDatabase): Promise<RunningTarget> {
  const { url, coreUrl, coreToken, pids } = await startCoreAndGateway({ DATABASE_URL: databaseUrl });
  const core = connectToCore(coreUrl, coreToken);
  const requests = new LeadRequests({ url, secret: await arrangeKey(core, BUSY), sourceId: SOURCE_ID });
  core.close();
  return {
    name: `${number(size, 0)} leads`,
    pids: { core: pids.core, gateway: pids.gateway },
    drive: (_, pace) => drive(new URL(url), { next: () => requests.creation(randomUUID()), status: 201 }, pace),
  };
}

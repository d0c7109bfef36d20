/**
 * Measures how soon after the response to a creation a consumer of the change feed has the lead.
 *
 *   node bench/changes.ts
 *
 * Uses SQLite, or a new database on the server of MONGODB_URL. Prints Markdown.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { aStudio, BY, STUDIO_ID } from '../test/support/builders.ts';
import { type CoreClients, connectToCore } from '../test/support/core-clients.ts';
import { newMongoDatabase, newSqliteDatabase, withStore } from './database.ts';
import { atTheEnd, nextMessage, runBenchmark, startProcess } from './processes.ts';
import { describeMachine, number, print, table } from './report.ts';

const LEADS = 3000;
const MAX_P99_MS = 100;

/** The longest pause between creations. Pauses are random, so that creations are not in step with the polls. */
const MAX_PAUSE_MS = 20;

await runBenchmark(async () => {
  const { MONGODB_URL } = process.env;
  const DATABASE_URL = MONGODB_URL ? newMongoDatabase(MONGODB_URL) : newSqliteDatabase();
  await withStore(DATABASE_URL, (store) => store.putStudio(aStudio(), BY));
  const core = startProcess('src/main.ts', { DATABASE_URL, CORE_PORT: '0', LOG_LEVEL: 'silent' });
  const clients = connectToCore((await nextMessage<{ url: string }>(core)).url);
  atTheEnd(() => clients.close());
  const delaysMs = (await measureDelays(clients)).sort((a, b) => a - b);
  const [p50 = Number.NaN, p99 = Number.NaN] = [0.5, 0.99].map((share) => delaysMs[Math.floor(LEADS * share)]);
  print(...describeMachine(), `- ${MONGODB_URL ? 'MongoDB' : 'SQLite'}, ${LEADS} leads, created one at a time`);
  const goal = `at most ${MAX_P99_MS}: ${p99 <= MAX_P99_MS ? 'met' : '**not met**'}`;
  print(table(['p50 ms', 'p99 ms', 'goal of p99'], 0, [[number(p50, 0), number(p99, 0), goal]]));
});

/** Returns the milliseconds from the response to each creation until a watching consumer has the lead. */
async function measureDelays({ leads }: CoreClients): Promise<number[]> {
  const arrivedAt = new Map<string, number>();
  const consume = async () => {
    for await (const { changes } of leads.watchLeadChanges({})) {
      for (const { lead } of changes) arrivedAt.set(lead?.id ?? '', performance.now());
      const acknowledgements = changes.map(({ lead, revision }) => {
        return { studioId: STUDIO_ID, leadId: lead?.id ?? '', revision };
      });
      await leads.acknowledgeLeadChanges({ acknowledgements });
      if (arrivedAt.size === LEADS) return;
    }
  };
  const respondedAt = new Map<string, number>();
  const create = async () => {
    while (respondedAt.size < LEADS) {
      const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
      const request = { studioId: STUDIO_ID, idempotencyKey: randomUUID(), displayName: 'Ada Lovelace', contact };
      const { lead } = await leads.createLead(request);
      respondedAt.set(lead?.id ?? '', performance.now());
      await sleep(Math.random() * MAX_PAUSE_MS);
    }
  };
  await Promise.all([consume(), create()]);
  return [...respondedAt].map(([id, at]) => Math.max(0, (arrivedAt.get(id) ?? Number.NaN) - at));
}

/**
 * Measures how soon a consumer of the change feed gets changes, and the cost of unacknowledged ones.
 *
 *   node bench/changes.ts [--waiting 100000] [--leads 2000]
 *
 * - `--waiting`: the number of unacknowledged leads before the measurement
 * - `--leads`: the number of leads that are created one at a time while a consumer watches
 *
 * Uses SQLite, or a new database on the server of MONGODB_URL. Prints Markdown.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { LeadChange } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { aLead, aStudio, BY, claimsOf, STUDIO_ID, times } from '../test/support/builders.ts';
import { type CoreClients, connectToCore } from '../test/support/core-clients.ts';
import { nextMessage } from './jobs.ts';
import { describeMachine } from './machine.ts';
import { ownDatabase } from './mongo-database.ts';
import { startProcess, temporaryFolder } from './processes.ts';
import { showProgress } from './progress.ts';
import { runBenchmark } from './run-benchmark.ts';
import { withStore } from './studio-with-key.ts';

/** The maximum p99 of the time to a change at a consumer; milliseconds. */
const TARGET_MS = 100;

/** Leads per write or pull, and concurrent creations. */
const BATCH = 100;
const CONCURRENCY = 16;

await runBenchmark(run);

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: { waiting: { type: 'string', default: '100000' }, leads: { type: 'string', default: '2000' } },
  });
  const [waiting, leads] = [Number(values.waiting), Number(values.leads)];
  const { MONGODB_URL } = process.env;
  const databaseUrl = MONGODB_URL ? ownDatabase(MONGODB_URL) : `sqlite:${temporaryFolder()}/leads.db`;
  await fill(databaseUrl, waiting);
  const core = startProcess('src/main.ts', {
    env: { DATABASE_URL: databaseUrl, CORE_PORT: '0', LOG_LEVEL: 'silent' },
  });
  const clients = connectToCore((await nextMessage<{ url: string }>(core)).url);
  console.log(
    describeMachine()
      .map((line) => `- ${line}`)
      .join('\n'),
  );
  console.log(`- ${MONGODB_URL ? 'MongoDB' : 'SQLite'}, ${waiting} unacknowledged leads\n`);
  console.log('| What | Measured |\n|---|---|');
  const row = (what: string, measured: string) => console.log(`| ${what} | ${measured} |`);
  // Warm-up.
  await createAll(clients, leads);
  row('creations with unacknowledged leads', rate(leads, await timed(() => createAll(clients, leads))));
  row('one pull of 100', `${(await timed(() => clients.leads.pullLeadChanges({ max: BATCH }))).toFixed(1)} ms`);
  let count = 0;
  const drainMs = await timed(async () => {
    count = await drain(clients);
  });
  row('pulling and acknowledging all of them', rate(count, drainMs));
  row('creations without unacknowledged leads', rate(leads, await timed(() => createAll(clients, leads))));
  await drain(clients);
  const delays = (await delaysOf(clients, leads)).sort((a, b) => a - b);
  const at = (share: number) => delays[Math.min(Math.floor(delays.length * share), delays.length - 1)] ?? Number.NaN;
  const p99 = at(0.99);
  row(
    'from the response to a creation to its consumer',
    `p50 ${at(0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms (target ${TARGET_MS})`,
  );
  clients.close();
}

async function fill(databaseUrl: string, count: number): Promise<void> {
  await withStore(databaseUrl, async (store) => {
    await store.putStudio(aStudio(), BY);
    const progress = showProgress('unacknowledged leads', count);
    for (let done = 0; done < count; done += BATCH) {
      await Promise.all(times(BATCH, () => aLead()).map((lead) => store.createLead(lead, claimsOf(lead))));
      progress(done);
    }
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function rate(count: number, ms: number): string {
  return `${Math.round((1000 * count) / ms).toLocaleString('en')}/s`;
}

async function create({ leads }: CoreClients): Promise<string> {
  const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
  const request = { studioId: STUDIO_ID, idempotencyKey: randomUUID(), displayName: 'Ada Lovelace', contact };
  return (await leads.createLead(request)).lead?.id ?? '';
}

async function createAll(clients: CoreClients, count: number): Promise<void> {
  for (let done = 0; done < count; done += CONCURRENCY) await Promise.all(times(CONCURRENCY, () => create(clients)));
}

function acknowledgementsOf(changes: readonly LeadChange[]) {
  return changes.map(({ lead, revision }) => ({ studioId: STUDIO_ID, leadId: lead?.id ?? '', revision }));
}

/** Pulls and acknowledges all changes; returns their number. */
async function drain({ leads }: CoreClients): Promise<number> {
  for (let count = 0; ; ) {
    const { changes } = await leads.pullLeadChanges({ max: BATCH });
    if (changes.length === 0) return count;
    await leads.acknowledgeLeadChanges({ acknowledgements: acknowledgementsOf(changes) });
    count += changes.length;
  }
}

/** The time from the response to each creation until a watching consumer has the lead; milliseconds. */
async function delaysOf(clients: CoreClients, count: number): Promise<number[]> {
  const arrivedAt = new Map<string, number>();
  const stopping = new AbortController();
  const watching = (async () => {
    for await (const { changes } of clients.leads.watchLeadChanges({}, { signal: stopping.signal })) {
      for (const { lead } of changes) arrivedAt.set(lead?.id ?? '', performance.now());
      await clients.leads.acknowledgeLeadChanges({ acknowledgements: acknowledgementsOf(changes) });
    }
  })().catch(() => {});
  const respondedAt = new Map<string, number>();
  for (let done = 0; done < count; done += 1) {
    respondedAt.set(await create(clients), performance.now());
    // Random, so that creations are not in step with the polls.
    await sleep(Math.random() * 20);
  }
  while (arrivedAt.size < count) await sleep(10);
  stopping.abort();
  await watching;
  return [...respondedAt].map(([id, at]) => Math.max(0, (arrivedAt.get(id) ?? Number.NaN) - at));
}

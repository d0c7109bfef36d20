/**
 * How soon a consumer has the changes of leads, and what it costs when nobody takes them.
 *
 *   node bench/changes.ts [--waiting 100000] [--leads 2000]
 *
 * - `--waiting`: how many leads wait to be acknowledged before anything is measured
 * - `--leads`: how many are created while a consumer watches, one at a time
 *
 * On SQLite, or where MONGODB_URL names a server, in a new database there. Prints Markdown.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { LeadChange } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { openStore } from '../src/store/open-store.ts';
import { aLead, aStudio, BY, claimsOf, STUDIO_ID, times } from '../test/support/builders.ts';
import { type CoreClients, connectToCore } from '../test/support/core-clients.ts';
import { describeMachine } from './machine.ts';
import { startProcess, temporaryFolder } from './processes.ts';
import { showProgress } from './progress.ts';
import { runBenchmark } from './run-benchmark.ts';

/** What a consumer is to have a change within, in 99 of 100 cases; milliseconds. */
const TARGET_MS = 100;

/** How many are written, pulled or created at once. */
const AT_ONCE = 100;
const ALONGSIDE = 16;

await runBenchmark(run);

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: { waiting: { type: 'string', default: '100000' }, leads: { type: 'string', default: '2000' } },
  });
  const [waiting, leads] = [Number(values.waiting), Number(values.leads)];
  const folder = temporaryFolder();
  const { MONGODB_URL } = process.env;
  const databaseUrl = MONGODB_URL ? new URL(`/bench-${randomUUID()}`, MONGODB_URL).href : `sqlite:${folder}/leads.db`;
  await fill(databaseUrl, waiting);
  const port = await freePort();
  startProcess('src/main.ts', {
    env: { DATABASE_URL: databaseUrl, CORE_PORT: `${port}`, LOG_LEVEL: 'silent' },
  });
  const clients = connectToCore(`http://127.0.0.1:${port}`);
  await serves(clients);
  console.log(
    describeMachine()
      .map((line) => `- ${line}`)
      .join('\n'),
  );
  console.log(`- ${MONGODB_URL ? 'MongoDB' : 'SQLite'}, ${waiting} leads that wait\n`);
  console.log('| What | Measured |\n|---|---|');
  const row = (what: string, measured: string) => console.log(`| ${what} | ${measured} |`);
  // Warming up.
  await createAll(clients, leads);
  row('creations while they wait', rate(leads, await timed(() => createAll(clients, leads))));
  row('one pull of 100', `${(await timed(() => clients.leads.pullLeadChanges({ max: AT_ONCE }))).toFixed(1)} ms`);
  let count = 0;
  row(
    'pulling and acknowledging them all',
    rate(
      1,
      (await timed(async () => {
        count = await drain(clients);
      })) / Math.max(count, 1),
    ),
  );
  row('creations while none wait', rate(leads, await timed(() => createAll(clients, leads))));
  await drain(clients);
  const delays = (await delaysOf(clients, leads)).sort((a, b) => a - b);
  const at = (share: number) => delays[Math.min(Math.floor(delays.length * share), delays.length - 1)] ?? Number.NaN;
  const p99 = at(0.99);
  row(
    'from the answer of a creation to its consumer',
    `p50 ${at(0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms (target ${TARGET_MS})`,
  );
  clients.close();
}

async function fill(databaseUrl: string, count: number): Promise<void> {
  const store = await openStore(databaseUrl);
  await store.putStudio(aStudio(), BY);
  const progress = showProgress('leads that wait', count);
  for (let done = 0; done < count; done += AT_ONCE) {
    await Promise.all(times(AT_ONCE, () => aLead()).map((lead) => store.createLead(lead, claimsOf(lead))));
    progress(done);
  }
  await store.close();
}

/** Somebody else may take it first, which would end the benchmark. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function serves({ directory }: CoreClients): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const isServing = await directory.getStudio({ studioId: STUDIO_ID }).then(
      () => true,
      () => false,
    );
    if (isServing) return;
    await sleep(200);
  }
  throw new Error('the core does not serve');
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
  for (let done = 0; done < count; done += ALONGSIDE) await Promise.all(times(ALONGSIDE, () => create(clients)));
}

function seen(changes: readonly LeadChange[]) {
  return changes.map(({ lead, revision }) => ({ studioId: STUDIO_ID, leadId: lead?.id ?? '', revision }));
}

/** Takes all that wait; gives how many there were. */
async function drain({ leads }: CoreClients): Promise<number> {
  for (let count = 0; ; ) {
    const { changes } = await leads.pullLeadChanges({ max: AT_ONCE });
    if (changes.length === 0) return count;
    await leads.acknowledgeLeadChanges({ acknowledgements: seen(changes) });
    count += changes.length;
  }
}

/** How long after the answer to its creation each lead is with one who watches; milliseconds. */
async function delaysOf(clients: CoreClients, count: number): Promise<number[]> {
  const arrivedAt = new Map<string, number>();
  const leaving = new AbortController();
  const watching = (async () => {
    for await (const { changes } of clients.leads.watchLeadChanges({}, { signal: leaving.signal })) {
      for (const { lead } of changes) arrivedAt.set(lead?.id ?? '', performance.now());
      await clients.leads.acknowledgeLeadChanges({ acknowledgements: seen(changes) });
    }
  })().catch(() => {});
  const answeredAt = new Map<string, number>();
  for (let done = 0; done < count; done += 1) {
    answeredAt.set(await create(clients), performance.now());
    // Not in step with the looks.
    await sleep(Math.random() * 20);
  }
  while (arrivedAt.size < count) await sleep(10);
  leaving.abort();
  await watching;
  return [...answeredAt].map(([id, at]) => Math.max(0, (arrivedAt.get(id) ?? Number.NaN) - at));
}

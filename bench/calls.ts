/**
 * Measures what a unary call costs a core, as the CRM makes it: processor time, beside that of another copy of the project.
 *
 *   node bench/calls.ts [--base FOLDER]
 *
 * - `--base`: the other copy, with its packages; both cores get the same calls in turn
 *
 * Uses SQLite. Prints Markdown.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { aStudio, BY, STUDIO_ID, times } from '../test/support/builders.ts';
import { type CoreClients, connectToCore } from '../test/support/core-clients.ts';
import { newSqliteDatabase, withStore } from './database.ts';
import { atTheEnd, cpuTimeUs, nextMessage, runBenchmark, startProcess } from './processes.ts';
import { describeMachine, median, number, print, table } from './report.ts';

const ROUNDS = 9;
const CALLS = 3200;
const CALLERS = 32;

await runBenchmark(async () => {
  const { base } = parseArgs({ options: { base: { type: 'string' } } }).values;
  const cores = [await startCore('this copy', 'src/main.ts')];
  if (base) cores.unshift(await startCore('the other', join(base, 'src/main.ts')));
  const costs = cores.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const [index, core] of cores.entries()) {
      const cost = await core.costOfRound();
      // The first one warms up.
      if (round > 0) costs[index]?.push(cost);
    }
  print(
    ...describeMachine(),
    `- SQLite, ${ROUNDS} rounds of ${CALLS} calls of ${CALLERS} callers in turn; processor time of a call`,
  );
  const [first = []] = costs;
  const rows = cores.map(({ name }, index) => {
    const own = costs[index] as number[];
    const ratios = own.map((cost, round) => cost / (first[round] as number)).sort((a, b) => a - b);
    const [lowest, highest] = [ratios.at(0), ratios.at(-1)].map((ratio) => number(ratio as number, 2));
    return [
      name,
      number(Math.min(...own), 0),
      number(median(own), 0),
      `${number(median(ratios), 2)} (${lowest}–${highest})`,
    ];
  });
  print(table(['core', 'lowest µs', 'median µs', 'ratio'], 1, rows));
});

async function startCore(name: string, file: string) {
  const DATABASE_URL = newSqliteDatabase();
  await withStore(DATABASE_URL, (store) => store.putStudio(aStudio(), BY));
  const core = startProcess(file, { DATABASE_URL, CORE_PORT: '0', LOG_LEVEL: 'silent' });
  const clients = connectToCore((await nextMessage<{ url: string }>(core)).url);
  atTheEnd(() => clients.close());
  const leadId = await created(clients);
  return {
    name,
    /** Returns the processor time of a call; microseconds. */
    async costOfRound(): Promise<number> {
      const before = cpuTimeUs(core.pid);
      const caller = async () => {
        for (let call = 0; call < CALLS / CALLERS; call += 1)
          await clients.leads.getLead({ studioId: STUDIO_ID, leadId });
      };
      await Promise.all(times(CALLERS, caller));
      return (cpuTimeUs(core.pid) - before) / CALLS;
    },
  };
}

async function created({ leads }: CoreClients): Promise<string> {
  const contact = { value: { case: 'email', value: 'ada@example.org' } } as const;
  const request = { studioId: STUDIO_ID, idempotencyKey: randomUUID(), displayName: 'Ada Lovelace', contact };
  return (await leads.createLead(request)).lead?.id ?? '';
}

/**
 * Measures the processor time of the CRM's unary calls in a core, and of requests over the exchange in a core and a gateway's client.
 * Can compare them with another copy of the project.
 *
 *   node bench/calls.ts [--base FOLDER]
 *
 * - `--base`: the folder of the other copy, with its packages; both copies get the same calls in turn
 *
 * Uses SQLite. Prints Markdown.
 */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CoreToken } from '../common/core-connection.ts';
import { hashKeySecret } from '../common/rules/key-secret.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import { readGatewayConfig } from '../gateway/config.ts';
import type * as CoreClientModule from '../gateway/core/core-client.ts';
import { STUDIO_ID, times } from '../test/support/builders.ts';
import { connectToCore } from '../test/support/core-clients.ts';
import { createStudioWithKey, newSqliteDatabase, withStore } from './database.ts';
import { atTheEnd, cpuTimeUs, nextMessage, runBenchmark, startProcess } from './processes.ts';
import { describeMachine, median, number, print, table } from './report.ts';

const ROUNDS = 9;
const CALLERS = 32;

/** The measured calls, the number of each in a round, and the processes whose time counts. */
const METHODS = {
  'unary get': { count: 3200, processes: 'core' },
  'get over the exchange': { count: 32_000, processes: 'core and client' },
  'creation over the exchange': { count: 9600, processes: 'core and client' },
} as const;

type Call = () => Promise<unknown>;

await runBenchmark(async () => {
  const { base } = parseArgs({ options: { base: { type: 'string' } } }).values;
  const copies = [await startCopy('this copy', '.')];
  if (base) copies.unshift(await startCopy('the other', base));
  const measured = Object.values(METHODS).map((each, method) => ({ ...each, method }));
  const costs = measured.map(() => copies.map((): number[] => []));
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const { count, processes, method } of measured)
      for (const [index, { core, calls }] of copies.entries()) {
        const pids = processes === 'core' ? [core] : [core, process.pid];
        const cost = await costOfRound(calls[method] as Call, count, pids);
        // The first round warms up.
        if (round > 0) costs[method]?.[index]?.push(cost);
      }
  print(...describeMachine(), `- SQLite, ${ROUNDS} rounds of ${CALLERS} callers in turn; processor time of a call`);
  const rows = Object.entries(METHODS).flatMap(([name, { processes }], method) =>
    copies.map((copy, index) => {
      const [first = [], own = []] = [costs[method]?.[0], costs[method]?.[index]];
      const ratios = own.map((cost, round) => cost / (first[round] as number)).sort((a, b) => a - b);
      const [lowest, highest] = [ratios.at(0), ratios.at(-1)].map((ratio) => number(ratio as number, 2));
      const ratio = `${number(median(ratios), 2)} (${lowest}–${highest})`;
      return [name, processes, copy.name, number(Math.min(...own), 0), number(median(own), 0), ratio];
    }),
  );
  print(table(['call', 'processes', 'copy', 'lowest µs', 'median µs', 'ratio'], 3, rows));
});

/** Returns the microseconds of processor time that a call takes in some processes. */
async function costOfRound(call: Call, count: number, pids: readonly (number | undefined)[]): Promise<number> {
  const spent = () => pids.reduce<number>((sum, pid) => sum + cpuTimeUs(pid), 0);
  const before = spent();
  const caller = async () => {
    for (let done = 0; done < count / CALLERS; done += 1) await call();
  };
  await Promise.all(times(CALLERS, caller));
  return (spent() - before) / count;
}

/** Starts a copy's core, with a CRM client and the copy's own gateway client. */
async function startCopy(name: string, folder: string) {
  const DATABASE_URL = newSqliteDatabase();
  const { secret } = await withStore(DATABASE_URL, (store) => createStudioWithKey(store, STUDIO_ID));
  const core = startProcess(resolve(folder, 'src/main.ts'), { DATABASE_URL, CORE_PORT: '0', LOG_LEVEL: 'silent' });
  const { url: CORE_URL } = await nextMessage<{ url: string }>(core);
  const { leads, close } = connectToCore(CORE_URL);
  const client: typeof CoreClientModule = await import(resolve(folder, 'gateway/core/core-client.ts'));
  const config = readGatewayConfig({ CORE_URL });
  const gateway = client.createCoreClient(config, new TlsCredentials({}), new CoreToken(config), undefined);
  atTheEnd(close);
  atTheEnd(gateway.close);
  const sender = { secretSha256: hashKeySecret(secret), requestId: 'bench', studioId: STUDIO_ID };
  const create = () => {
    const idempotencyKey = randomUUID();
    const contact = { value: { case: 'email', value: `${idempotencyKey}@example.org` } } as const;
    return gateway.createLead(sender, { idempotencyKey, displayName: 'Ada Lovelace', contact });
  };
  const { leadId } = await create();
  const get = () => gateway.getLead(sender, leadId);
  return { name, core: core.pid, calls: [() => leads.getLead({ studioId: STUDIO_ID, leadId }), get, create] };
}

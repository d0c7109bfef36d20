/**
 * Shows in which process and part of the code a request spends its processor time, and how many writes, reads and wake-ups it takes.
 *
 *   node bench/where.ts [--scenario get|list|replay|create] [--keys NUMBER] [--seconds NUMBER] [--functions NUMBER]
 *
 * - `--keys`: the number of studios whose keys are used, instead of one
 * - `--functions`: the number of the most expensive functions to print
 *
 * Prints microseconds of processor time per request as Markdown, with 64 connections and with 4. A run without a profiler measures their
 * number, and a second run with Node's profiler their distribution. A native function that PARTS does not name counts for its caller.
 * `(program)` is Node's event loop and the kernel, which no JavaScript has called.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cpuTimeUs, runBenchmark, temporaryFolder } from './processes.ts';
import { describeMachine, number, print, table } from './report.ts';
import { type RunningTarget, startProduct, startWithManyKeys } from './targets.ts';
import { SCENARIOS } from './workload.ts';

type Scenario = (typeof SCENARIOS)[number];

const CONNECTIONS = [64, 4];
const PROCESSES = ['gateway', 'core'] as const;
const WARM_UP_MS = 10_000;

/** The interval between samples. */
const SAMPLE_US = 200;

/** The parts by the file of a function, or by its name if it is native. The first match counts. */
const PARTS: readonly (readonly [part: string, pattern: RegExp])[] = [
  ['garbage collection', /^\(garbage collector\)$/],
  ['event loop, kernel', /^\((program|root)\)$/],
  ['writing to sockets', /^(writev|writeBuffer|writeUtf8String|writeLatin1String)$/],
  ['SQLite', /^(get|all|run|exec|iterate)$|src\/store\/sqlite/],
  ['Connect', /@connectrpc/],
  ['protobuf-es', /@bufbuild|proto\/gen/],
  ['HTTP/2', /node:internal\/http2/],
  ['HTTP/1.1', /node:_http|node:internal\/http/],
  ['streams and sockets', /node:(internal\/)?(streams?|net|stream_base_commons|js_stream)/],
  ['timers, promises, ticks', /node:/],
  [
    'Fastify',
    /node_modules\/(fastify|find-my-way|@fastify|reusify|fastq|avvio|light-my-request|secure-json|toad-cache|process-warning)/,
  ],
  ['hash of the key', /key-secret/],
  ['quota', /gateway\/admission\/(quota|count-quota)/],
  ['admission', /gateway\/admission/],
  ['connections', /gateway\/port|src\/port/],
  ['batcher, core client', /gateway\/core/],
  ['the exchange', /src\/rpc\/exchange-service/],
  ['log and metrics', /observation|common\/(metrics|logger|tracing)|node_modules\/(pino|@prometheus)/],
  ['use cases, domain, stores', /src\/(usecases|domain|store)/],
  ['other code of ours', /./],
];

/** A node of a profile, which is a tree of calls. */
interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  /** Microseconds on the clock of `process.hrtime`. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The cost of a load, per request. */
interface Measured {
  readonly connections: number;
  readonly from: number;
  readonly to: number;
  readonly per: Readonly<Record<(typeof PROCESSES)[number], Counts>>;
}

interface Counts {
  readonly cpuUs: number;
  readonly writes: number;
  readonly reads: number;
  readonly wakeUps: number;
}

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);

function readCounts(pid: number | undefined): Counts {
  const readCount = (file: string, name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1]);
  return {
    cpuUs: cpuTimeUs(pid),
    writes: readCount('io', 'syscw'),
    reads: readCount('io', 'syscr'),
    wakeUps: readCount('status', 'voluntary_ctxt_switches'),
  };
}

async function measure({ pids, drive }: RunningTarget, scenario: Scenario, durationMs: number): Promise<Measured[]> {
  const all: Measured[] = [];
  for (const connections of CONNECTIONS) {
    await drive(scenario, { connections, durationMs: WARM_UP_MS });
    const before = PROCESSES.map((name) => readCounts(pids[name]));
    const from = nowUs();
    const { answered } = await drive(scenario, { connections, durationMs });
    const per = PROCESSES.map((name, index) => {
      const counts = Object.entries(readCounts(pids[name])).map(([key, count]) => {
        return [key, (count - (before[index] as Counts)[key as keyof Counts]) / answered];
      });
      return [name, Object.fromEntries(counts)];
    });
    all.push({ connections, from, to: nowUs(), per: Object.fromEntries(per) });
  }
  return all;
}

/** Returns the share of each value among the samples of a time in which the process was not idle. */
function computeShares(
  { nodes, startTime, samples, timeDeltas }: Profile,
  { from, to }: Measured,
  findName: (node: ProfileNode, path: readonly ProfileNode[]) => string,
): Map<string, number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const values = new Map(
    nodes.map((node) => {
      const path: ProfileNode[] = [];
      for (let id = callers.get(node.id); id !== undefined; id = callers.get(id))
        path.push(byId.get(id) as ProfileNode);
      return [node.id, findName(node, path)];
    }),
  );
  const shares = new Map<string, number>();
  let at = startTime;
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const delta = timeDeltas[index + 1] ?? 0;
    at += timeDeltas[index] ?? 0;
    if (at < from || at > to || byId.get(id)?.callFrame.functionName === '(idle)') continue;
    busy += delta;
    const value = values.get(id) as string;
    shares.set(value, (shares.get(value) ?? 0) + delta);
  }
  for (const [value, time] of shares) shares.set(value, time / busy);
  return shares;
}

const isNative = ({ callFrame: { url } }: ProfileNode) => url === '';

function findPart(node: ProfileNode, path: readonly ProfileNode[]): string {
  const named = ({ callFrame: { url, functionName } }: ProfileNode) =>
    PARTS.slice(0, -1).find(([, pattern]) => pattern.test(url || functionName))?.[0];
  const known = isNative(node)
    ? (named(node) ??
      path.map((each) => (isNative(each) ? undefined : (named(each) ?? 'other code of ours'))).find((each) => each))
    : named(node);
  return known ?? 'other code of ours';
}

const describeFunction = ({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string =>
  `${functionName || '(anonymous)'} ${url.replace(/^.*\/(node_modules|gateway|src|common|proto)\//, '$1/')}:${lineNumber + 1}`;

/** Ends a process and returns its profile. */
async function recordProfile(pid: number, folder: string): Promise<Profile> {
  process.kill(pid, 'SIGTERM');
  while (!Number.isNaN(cpuTimeUs(pid))) await sleep(50);
  const file = readdirSync(folder).find((name) => name.split('.')[3] === `${pid}`);
  return JSON.parse(readFileSync(join(folder, file as string), 'utf8'));
}

await runBenchmark(async () => {
  const { keys, scenario, seconds, functions } = parseArgs({
    options: {
      keys: { type: 'string' },
      scenario: { type: 'string', default: 'get' },
      seconds: { type: 'string', default: '5' },
      functions: { type: 'string', default: '0' },
    },
  }).values;
  if (!SCENARIOS.includes(scenario as Scenario)) throw new Error(`--scenario: ${scenario} is none of ${SCENARIOS}`);
  const durationMs = Number(seconds) * 1000;
  const start = async (own?: Record<string, string>) =>
    keys === undefined ? startProduct(own) : (await startWithManyKeys(Number(keys), own))[1];
  const plain = await measure(await start(), scenario as Scenario, durationMs);
  const folder = temporaryFolder();
  const NODE_OPTIONS = `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=${SAMPLE_US}`;
  const target = await start({ NODE_OPTIONS });
  const profiled = await measure(target, scenario as Scenario, durationMs);
  const columns: { name: string; counts: Counts; shares: Map<string, number>; top: Map<string, number> }[] = [];
  for (const process of PROCESSES) {
    const profile = await recordProfile(target.pids[process] as number, folder);
    for (const [index, window] of profiled.entries()) {
      columns.push({
        name: `${process}, ${window.connections}`,
        counts: (plain[index] as Measured).per[process],
        shares: computeShares(profile, window, findPart),
        top: computeShares(profile, window, describeFunction),
      });
    }
  }
  print(...describeMachine());
  const heads = ['', ...columns.map(({ name }) => name)];
  const formatRow = (name: string, value: (column: (typeof columns)[number]) => number, digits: number) => [
    name,
    ...columns.map((column) => number(value(column), digits)),
  ];
  const rows = PARTS.map(([part]) =>
    formatRow(part, ({ shares, counts }) => (shares.get(part) ?? Number.NaN) * counts.cpuUs, 1),
  );
  print(
    table(heads, 1, [
      ...rows.filter((cells) => cells.slice(1).some((cell) => cell !== '')),
      formatRow('**all**', ({ counts }) => counts.cpuUs, 1),
      formatRow('writes', ({ counts }) => counts.writes, 2),
      formatRow('reads', ({ counts }) => counts.reads, 2),
      formatRow('wake-ups', ({ counts }) => counts.wakeUps, 2),
    ]),
  );
  for (const { name, top, counts } of Number(functions) > 0 ? columns : []) {
    const most = [...top].sort(([, a], [, b]) => b - a).slice(0, Number(functions));
    print(
      `## ${name}`,
      '',
      table(
        ['function', 'µs'],
        1,
        most.map(([what, share]) => [what, number(share * counts.cpuUs, 2)]),
      ),
    );
  }
});

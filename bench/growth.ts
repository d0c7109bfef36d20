/**
 * Measures the cost of a studio's growth: the same requests to the product on a database with few leads and on one with many.
 *
 *   node bench/growth.ts [--leads NUMBER]
 *
 * Measures SQLite, and MongoDB if MONGODB_URL is set. `--leads` is the size of the large database. Prints Markdown to standard output and
 * progress to standard error. The exit status is 1 when a request failed.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { DEFAULT_CONSUMER } from '../src/domain/consumer.ts';
import type { LeadFilter } from '../src/domain/lead-filter.ts';
import { timeOfId } from '../src/domain/new-id.ts';
import type { Store } from '../src/store/store.ts';
import {
  bytesOnDisk,
  type FilledStudio,
  fillStudio,
  newMongoDatabase,
  newSqliteDatabase,
  serverName,
  withStore,
} from './database.ts';
import { command, measureSeconds, runBenchmark, temporaryFolder } from './processes.ts';
import { atMost, comparisonTable, describeMachine, failureLines, median, number, print, table } from './report.ts';
import { type Compared, type Comparison, compare, type Rounds, takeTurns } from './rounds.ts';
import { httpTarget, type RunningTarget, startCoreAndGateway } from './targets.ts';
import { LEADS } from './workload.ts';

/** The leads of the quiet studio, all older than those of the studio that grows. */
const QUIET_LEADS = 100;

/** The minimum rates with many leads: a request takes at most 1.2 times as long. At the highest rate, the disk adds to that. */
const MIN_RATE = 1 / 1.2;
const MIN_HIGHEST_RATE = 0.8;

const ROUNDS = 9;
const reading = {
  connections: 1,
  minRate: MIN_RATE,
  rounds: { rounds: ROUNDS, roundMs: 1000, warmUpMs: 1000 },
} as const;
/** The rounds are short, because both databases grow meanwhile. */
const creating = {
  scenario: 'create',
  rounds: { rounds: ROUNDS, roundMs: 500, warmUpMs: 500 },
  studio: 'busy',
} as const;
const COMPARISONS: readonly (Comparison & { readonly studio: 'busy' | 'quiet'; readonly rounds: Rounds })[] = [
  { ...reading, name: 'get', scenario: 'get', studio: 'busy' },
  { ...reading, name: 'list', scenario: 'list', studio: 'busy' },
  { ...reading, name: 'list of a quiet studio beside it', scenario: 'list', studio: 'quiet' },
  { ...reading, name: 'replay', scenario: 'replay', studio: 'busy' },
  { ...creating, name: 'create', connections: 1, minRate: MIN_RATE },
  { ...creating, name: 'create, 64 connections', connections: 64, minRate: MIN_HIGHEST_RATE },
];

/** Matches leads of a stage that changed before a time, by the index that retention uses. */
const newBefore = (end: Date): LeadFilter => ({
  stages: ['new'],
  sourceIds: [],
  created: { start: null, end: null },
  updated: { start: new Date(0), end },
});

/** Calls of the store that consumers and retention make. Their maximum time with many leads is 1.2 times that with few. */
const CALLS: readonly (readonly [name: string, call: (store: Store, side: Side) => Promise<unknown>])[] = [
  ['feed: list and acknowledge 100 changes', listChanges],
  [
    'retention: find ten leads in a range of 1,000',
    (store, { thousandBefore }) => store.walkLeads('busy-studio', null, 10, newBefore(thousandBefore)),
  ],
  [
    'retention: count all leads of a stage up to 1,000',
    (store) => store.measureStage('busy-studio', 'new', newBefore(new Date('2100-01-01')), 1000),
  ],
];
const CALL_ROUNDS = 101;
const MAX_FAILED_CALLS = 10;
const MAX_TIME = 1.2;

/** The trees that a creation writes to: a request reads a page of each level. */
const TREES = ['leads', 'sqlite_autoindex_leads_1', 'sqlite_autoindex_leads_2', 'leads_by_stage', 'contact_claims'];

const EXPECTED_LEADS = 100_000_000;

/** A gateway and a core on one database, with targets for the studio that grows and for the quiet one. */
interface Side {
  readonly databaseUrl: string;
  readonly leads: string;
  /** The bytes on disk of a lead, after the load. */
  readonly bytesOfLead: number;
  /** The time before which 1,000 leads of the studio that grows were created. */
  readonly thousandBefore: Date;
  readonly busy: RunningTarget;
  readonly quiet: RunningTarget;
}

await runBenchmark(async () => {
  const { leads } = parseArgs({ options: { leads: { type: 'string', default: '100000' } } }).values;
  if (!/^[1-9]\d{3,8}$/.test(leads)) throw new Error(`--leads: ${leads} is not a number from 1000 to 999999999`);
  print(
    ...describeMachine(),
    `- medians of ${ROUNDS} rounds in turn, for ratios with the lowest and the highest`,
    '- processor time is microseconds per request, by process; `load` is the load generator',
  );
  const { MONGODB_URL } = process.env;
  const files: string[] = [];
  await measure('SQLite', () => files[files.push(newSqliteDatabase()) - 1] as string, Number(leads));
  print('## The trees of SQLite', '', describeTrees(files[1]?.replace(/^sqlite:/, '') as string));
  if (MONGODB_URL) await measure(await serverName(MONGODB_URL), () => newMongoDatabase(MONGODB_URL), Number(leads));
});

async function measure(engine: string, newDatabase: () => string, size: number): Promise<void> {
  const few = await startSide(newDatabase(), LEADS);
  const many = await startSide(newDatabase(), size);
  const all: Compared[] = [];
  for (const { studio, rounds, ...comparison } of COMPARISONS) {
    all.push(await compare(comparison, [few[studio], many[studio]], rounds));
  }
  const failures = failureLines(all);
  print(`## ${engine}`, '', comparisonTable(all), '', ...failures);
  if (failures.length > 0) process.exitCode = 1;
  print(await compareCalls(few, many));
  print(...[few, many].map(({ leads, bytesOfLead }) => `- a lead of ${leads}: ${number(bytesOfLead, 0)} bytes`));
  if (engine !== 'SQLite') return;
  const seconds = await command(many.databaseUrl, 'backup', join(temporaryFolder(), 'copy.db'));
  print(`A backup of the larger database took ${number(seconds, 0)} s.`);
}

/** Fills a database, and starts a gateway and a core on it. */
async function startSide(DATABASE_URL: string, size: number): Promise<Side> {
  const name = `${size.toLocaleString('en')} leads`;
  console.error(`loading ${name}`);
  const studios = await withStore(DATABASE_URL, async (store) => ({
    quiet: await fillStudio(store, 'quiet-studio', QUIET_LEADS),
    busy: await fillStudio(store, 'busy-studio', size),
  }));
  const bytes = await bytesOnDisk(DATABASE_URL);
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL });
  const makeTarget = ({ key, known }: FilledStudio) => httpTarget(name, { url, ...key }, pids, known);
  const targets = { quiet: await makeTarget(studios.quiet), busy: await makeTarget(studios.busy) };
  const { leads } = studios.busy.known;
  const thousandth = leads[Math.floor((LEADS * leads.length) / size) - 1] ?? leads[0];
  const thousandBefore = timeOfId(thousandth?.id ?? '');
  return { databaseUrl: DATABASE_URL, leads: name, bytesOfLead: bytes / size, thousandBefore, ...targets };
}

/** Distributes the changes of all loaded leads, which no consumer has asked for yet. On FerretDB, the first call may fail. */
async function distributeAll(store: Store): Promise<void> {
  let failures = 0;
  const seconds = await measureSeconds(async () => {
    for (let isComplete = false; !isComplete; ) {
      isComplete = await store.distributeLeadChanges().catch((error) => {
        failures += 1;
        if (failures > MAX_FAILED_CALLS) throw error;
        return false;
      });
    }
  });
  console.error(`distributed all changes in ${number(seconds, 0)} s; ${failures} calls failed`);
}

async function listChanges(store: Store): Promise<void> {
  const { changes = [] } = (await store.listDeliveries(DEFAULT_CONSUMER.number, 100)) ?? {};
  if (changes.length < 100) throw new Error(`the feed has ${changes.length} changes`);
  const acknowledgements = changes.map(({ lead: { studioId, id: leadId }, revision }) => ({
    studioId,
    leadId,
    revision,
  }));
  await store.acknowledgeDeliveries(DEFAULT_CONSUMER.number, acknowledgements);
}

/** Measures CALLS on both databases in turn. Returns a table of milliseconds. */
function compareCalls(few: Side, many: Side): Promise<string> {
  return withStore(few.databaseUrl, (ofFew) =>
    withStore(many.databaseUrl, async (ofMany) => {
      const [sides, stores] = [[few, many] as const, [ofFew, ofMany] as const];
      for (const store of stores) await distributeAll(store);
      const rows: string[][] = [];
      for (const [name, call] of CALLS) {
        console.error(name);
        const times: [few: number[], many: number[]] = [[], []];
        await takeTurns(CALL_ROUNDS, async (index) => {
          times[index].push(1000 * (await measureSeconds(() => call(stores[index], sides[index]))));
        });
        const [fewMs = Number.NaN, manyMs = Number.NaN] = times.map(median);
        const ratio = manyMs / fewMs;
        rows.push([name, number(fewMs, 2), number(manyMs, 2), number(ratio, 2), atMost(MAX_TIME, ratio)]);
      }
      return table(['', ...sides.map(({ leads }) => `${leads}, ms`), 'ratio', 'goal'], 1, rows);
    }),
  );
}

/** Returns a table of each tree's levels: as measured, and as expected with EXPECTED_LEADS if the pages stay equally full. */
function describeTrees(path: string): string {
  using database = new DatabaseSync(path, { readOnly: true });
  const select = database.prepare(`
    SELECT max(length(path) - length(replace(path, '/', ''))) AS levels,
      avg(ncell) FILTER (WHERE pagetype = 'leaf') AS entries, sum(pagetype = 'leaf') AS leaves,
      avg(ncell + 1) FILTER (WHERE pagetype = 'internal' AND path <> '/') AS children, sum(pgsize) AS bytes
    FROM dbstat WHERE name = ? AND pagetype <> 'overflow'`);
  const rows = TREES.map((name) => {
    const found = select.get(name) as Record<'levels' | 'entries' | 'leaves' | 'children' | 'bytes', number>;
    const { levels, entries, leaves, children, bytes } = found;
    const expected = 1 + Math.ceil(Math.log(EXPECTED_LEADS / entries) / Math.log(children));
    const cells = [entries * leaves, bytes / 2 ** 20, entries, children, levels, expected];
    return [name, ...cells.map((cell) => number(cell, 0))];
  });
  const heads = ['tree', 'entries', 'MiB', 'a leaf', 'a page above', 'levels', `of ${number(EXPECTED_LEADS, 0)}`];
  return table(heads, 1, rows);
}

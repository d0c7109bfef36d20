import type { Access, Call } from './growth-access.ts';
import type { Engine } from './growth-database.ts';
import { showProgress } from './progress.ts';
import { median } from './statistics.ts';

export const ROUNDS = 9;

/** Concurrent creations, which share a transaction. */
export const BATCH = 32;

type Sides = readonly [small: Access, large: Access];

/** The cost of a call: milliseconds, and microseconds of processor time per request. */
export interface Cost {
  readonly ms: number;
  readonly cpuUs: number;
}

export interface Measurement {
  readonly name: string;
  readonly rounds: readonly (readonly [small: Cost, large: Cost])[];
}

interface Kind {
  readonly name: string;
  readonly often: keyof Engine['calls'];
  readonly requests: number;
  /**
   * Combines the times of a round. The median ignores disturbances by the machine; creations need the mean, because a checkpoint affects
   * single ones but is a part of their cost.
   */
  readonly combine: (times: readonly number[]) => number;
  /** Prepares the call of a turn. */
  prepare(access: Access, turn: number): Call;
}

const reading = { often: 'reads', requests: 1, combine: median } as const;
const KINDS: readonly Kind[] = [
  {
    name: 'create, one at a time',
    often: 'creations',
    requests: 1,
    combine: mean,
    prepare: (access) => access.create(1),
  },
  {
    name: `create, ${BATCH} concurrently`,
    often: 'batches',
    requests: BATCH,
    combine: mean,
    prepare: (access) => access.create(BATCH),
  },
  { ...reading, name: 'replay of a creation', prepare: (access) => access.replay(access.leads.any()) },
  { ...reading, name: 'read one by its id', prepare: (access) => access.read(access.leads.any().lead.id) },
  { ...reading, name: 'first page of 25', prepare: (access) => access.list(access.leads.firstPage()) },
  {
    ...reading,
    name: 'a page in the middle',
    prepare: (access, turn) => access.list(access.leads.middlePage(turn)),
  },
  { ...reading, name: 'last page', prepare: (access) => access.list(access.leads.lastPage()) },
  {
    ...reading,
    name: 'first page of a quiet studio beside it',
    prepare: (access) => access.list(access.leads.quietPage()),
  },
];

/** The number of leads that a measurement adds to each database. */
export const leadsAdded = ({ calls }: Engine): number => (ROUNDS + 1) * (calls.creations + calls.batches * BATCH);

/** Makes every call on both sides in turn, so that disturbances by the machine affect both. */
export async function measure({ name, calls }: Engine, sides: Sides): Promise<Measurement[]> {
  for (const access of sides) {
    for (const { lead } of access.leads.sample) await timeOf(access.read(lead.id));
  }
  const measurements = KINDS.map(({ name }) => ({ name, rounds: [] as [Cost, Cost][] }));
  const progress = showProgress(`${name}: measuring`, ROUNDS);
  // The first round only warms up.
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, kind] of KINDS.entries()) {
      const costs = await measureRound(kind, calls[kind.often], sides);
      if (round >= 0) measurements[index]?.rounds.push(costs);
    }
    if (round >= 0) progress(round + 1);
  }
  return measurements;
}

async function measureRound(kind: Kind, times: number, sides: Sides): Promise<[Cost, Cost]> {
  const spentMs: [number[], number[]] = [[], []];
  const cpuBefore = sides.map((access) => access.cpuTimeUs());
  for (let turn = 0; turn < times; turn += 1) {
    // The order alternates, because the first side finds the processor's caches filled by the other one.
    for (const which of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      spentMs[which].push(await timeOf(kind.prepare(sides[which], turn)));
    }
  }
  const costOf = (which: 0 | 1): Cost => ({
    ms: kind.combine(spentMs[which]),
    cpuUs: (sides[which].cpuTimeUs() - (cpuBefore[which] ?? Number.NaN)) / (times * kind.requests),
  });
  return [costOf(0), costOf(1)];
}

/** Makes a call and returns its time; milliseconds. @throws Error when the response is wrong */
async function timeOf(call: Call): Promise<number> {
  const start = performance.now();
  const check = await call();
  const spent = performance.now() - start;
  check();
  return spent;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

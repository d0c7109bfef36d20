import type { Access, Call } from './growth-access.ts';
import type { Engine } from './growth-database.ts';
import { showProgress } from './progress.ts';
import { median } from './statistics.ts';

export const ROUNDS = 9;

/** What a group commit shares in one transaction. */
export const BATCH = 32;

type Sides = readonly [small: Access, large: Access];

/** What a call cost; milliseconds, and microseconds of processor time for each of its requests. */
export interface Cost {
  readonly ms: number;
  readonly cpuUs: number;
}

/** What a kind of call cost. */
export interface Measurement {
  readonly name: string;
  readonly rounds: readonly (readonly [small: Cost, large: Cost])[];
}

interface Kind {
  readonly name: string;
  readonly often: keyof Engine['calls'];
  readonly requests: number;
  /**
   * Makes one of the times of a round. What else the machine does spoils single calls; a checkpoint falls on single
   * creations too, but is a part of what they cost.
   */
  readonly combine: (times: readonly number[]) => number;
  /** Makes a call ready; no two turns of a round need to be the same. */
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
    name: `create, ${BATCH} at once`,
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

/** How many leads a measurement adds to each database. */
export const leadsAdded = ({ calls }: Engine): number => (ROUNDS + 1) * (calls.creations + calls.batches * BATCH);

/** Makes every call on both sides in turn, so that whatever else happens on the machine happens to both. */
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
    // Whoever comes first finds the processor's caches full of the other's: that falls to both alike.
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

/** Makes a call and gives the time that it took; milliseconds. @throws Error when the answer is not the right one */
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

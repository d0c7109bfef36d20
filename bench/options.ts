import { parseArgs } from 'node:util';
import type { Rounds } from './rounds.ts';
import { SCENARIOS } from './workload.ts';

/** The scenarios, the latency of creations below their highest rate, few and many connections, and many keys. */
const PARTS = [...SCENARIOS, 'p99', 'crowds', 'keys'] as const;

/** How the product runs: in processes, by `npm start`, with logs, metrics and traces, on MongoDB. */
const PLACES = ['product', 'start', 'observed', 'mongodb'] as const;

/** The places of a quick run. */
const QUICK_PLACES = 'product,start,mongodb';

const FULL: Rounds = { rounds: 5, roundMs: 5000, warmUpMs: 2000 };
const QUICK: Rounds = { rounds: 3, roundMs: 1000, warmUpMs: 750 };
/** To see the effect of a change. */
const ONLY: Rounds = { rounds: 3, roundMs: 3000, warmUpMs: 2000 };

/** The command line options. */
export interface Options {
  readonly parts: readonly (typeof PARTS)[number][];
  readonly places: readonly (typeof PLACES)[number][];
  readonly rounds: Rounds;
}

/** @throws Error when an option is invalid */
export function readOptions(): Options {
  const { quick, only, target } = parseArgs({
    options: { quick: { type: 'boolean', default: false }, only: { type: 'string' }, target: { type: 'string' } },
  }).values;
  const chosen = choose('--only', PARTS, only);
  return {
    // `p99` needs the highest rate of creations.
    parts: PARTS.filter((part) => chosen.includes(part) || (part === 'create' && chosen.includes('p99'))),
    places: choose('--target', PLACES, target ?? (only ? 'product' : quick ? QUICK_PLACES : undefined)),
    rounds: quick ? QUICK : only ? ONLY : FULL,
  };
}

function choose<Name extends string>(option: string, names: readonly Name[], list: string | undefined): Name[] {
  const chosen: readonly string[] = list?.split(',') ?? names;
  const unknown = chosen.find((name) => !(names as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`${option}: ${unknown} is not one of ${names.join(', ')}`);
  return names.filter((name) => chosen.includes(name));
}

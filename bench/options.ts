import { parseArgs } from 'node:util';
import type { Rounds } from './rounds.ts';
import { SCENARIOS } from './workload.ts';

/**
 * What can be measured: the scenarios, the latency of creations at a part of their highest rate, the scenarios with few and with
 * many connections, and with many keys.
 */
const PARTS = [...SCENARIOS, 'p99', 'crowds', 'keys'] as const;
export type Part = (typeof PARTS)[number];

/** How the product is run: process by process, by `npm start`, with logs, metrics and traces, on MongoDB. */
const PLACES = ['product', 'start', 'observed', 'mongodb'] as const;

/** What a short run has time for. */
const QUICK_PLACES = 'product,start,mongodb';
export type Place = (typeof PLACES)[number];

const FULL: Rounds = { rounds: 5, roundMs: 5000, warmUpMs: 2000 };
const QUICK: Rounds = { rounds: 3, roundMs: 1000, warmUpMs: 750 };
/** For whoever changes the product and wants to see what it did. */
const ONLY: Rounds = { rounds: 3, roundMs: 3000, warmUpMs: 2000 };

const CONNECTIONS = 64;

/** What the command line asks for. */
export interface Options {
  readonly parts: readonly Part[];
  readonly places: readonly Place[];
  readonly rounds: Rounds;
  readonly connections: number;
  /** Where CPU profiles go; undefined: nowhere. */
  readonly profileFolder: string | undefined;
}

/** @throws Error about what it does not understand */
export function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      target: { type: 'string' },
      connections: { type: 'string', default: String(CONNECTIONS) },
      profile: { type: 'string' },
    },
  });
  const { quick, only, target, profile } = values;
  const chosen = choose('--only', PARTS, only);
  return {
    // A part of the highest rate can be put on only once that is known.
    parts: PARTS.filter((part) => chosen.includes(part) || (part === 'create' && chosen.includes('p99'))),
    places: choose('--target', PLACES, target ?? (only ? 'product' : quick ? QUICK_PLACES : undefined)),
    rounds: quick ? QUICK : only ? ONLY : FULL,
    connections: wholeNumber('--connections', values.connections),
    profileFolder: profile,
  };
}

function wholeNumber(option: string, text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${option}: ${text} is no number from 1 to 9999`);
  return Number(text);
}

function choose<Name extends string>(option: string, names: readonly Name[], list: string | undefined): Name[] {
  const chosen: readonly string[] = list?.split(',') ?? names;
  const unknown = chosen.find((name) => !(names as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`${option}: ${unknown} is none of ${names.join(', ')}`);
  return names.filter((name) => chosen.includes(name));
}

import type { Driven, Series } from './rounds.ts';
import type { RunningTarget } from './targets.ts';
import type { Scenario } from './workload.ts';

/** With how many connections it is measured besides the usual number. */
export const CROWDS = [1, 4, 256] as const;

/** Most websites have a few. */
const FEW = 4;

/** What part of the floor's rate the product is to reach with a few; for each scenario that is measured. */
const MIN_RATIO_TO_FLOOR_WITH_FEW = { get: 0.35, list: 0.8, create: 0.8 } as const satisfies Partial<
  Record<Scenario, number>
>;

export const CROWD_SCENARIOS = Object.keys(MIN_RATIO_TO_FLOOR_WITH_FEW) as (keyof typeof MIN_RATIO_TO_FLOOR_WITH_FEW)[];

/** What a crowd of one size gave. */
export interface Crowd {
  /** What it did, and how many they were. */
  readonly name: string;
  readonly all: readonly Series[];
  /** What part of the floor's rate the product is to reach; undefined: any. */
  readonly atLeast: number | undefined;
}

/** Measures targets with few and with many connections. */
export async function measureCrowds(
  targets: readonly RunningTarget[],
  drive: (scenario: Scenario, driven: readonly Driven[], connections: number) => Promise<Series[]>,
): Promise<Crowd[]> {
  const crowds: Crowd[] = [];
  for (const scenario of CROWD_SCENARIOS) {
    for (const connections of CROWDS) {
      const all = await drive(
        scenario,
        targets.map((target) => ({ target })),
        connections,
      );
      const name = `${scenario}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`;
      crowds.push({ name, all, atLeast: connections === FEW ? MIN_RATIO_TO_FLOOR_WITH_FEW[scenario] : undefined });
    }
  }
  return crowds;
}

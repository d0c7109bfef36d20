import { cpuTimeUs, processorTicks } from './cpu-time.ts';
import type { Pace } from './drive.ts';
import { median } from './statistics.ts';
import type { LoadResult } from './tally.ts';
import type { RunningTarget } from './targets.ts';
import type { Scenario } from './workload.ts';

export interface Rounds {
  readonly rounds: number;
  readonly roundMs: number;
  /** Before the first round of each target; not measured. */
  readonly warmUpMs: number;
}

/** The number of loads on each target. */
export const loadsOf = ({ rounds }: Rounds): number => 1 + rounds;

/** The result of a round on a target. */
export interface Round extends LoadResult {
  readonly ratePerSecond: number;
  /** Processor time per request, by process; microseconds, NaN if unknown. */
  readonly cpuUs: Readonly<Record<string, number>>;
  /** The part of the processors' time that the host gave to other guests; percent, NaN if unknown. */
  readonly stolenPercent: number;
}

/** The rounds of a scenario on a target. */
export interface Series {
  readonly target: string;
  readonly rounds: readonly Round[];
  /** Including the warm-up. */
  readonly failures: Readonly<Record<string, number>>;
}

/** A target, and its rate; undefined: the highest. */
export interface Driven {
  readonly target: RunningTarget;
  readonly ratePerSecond?: number;
}

/**
 * Drives targets in turn, round by round, so that disturbances by the machine affect all of them; the first target changes with each
 * round.
 *
 * @param onLoad called after each of the `loadsOf(rounds)` loads on each target
 */
export async function measure(
  scenario: Scenario,
  driven: readonly Driven[],
  { rounds, roundMs, warmUpMs }: Rounds,
  connections: number,
  onLoad: () => void,
): Promise<Series[]> {
  const series = driven.map(({ target }) => ({
    target: target.name,
    rounds: [] as Round[],
    failures: {} as Record<string, number>,
  }));
  const turn = async (index: number, durationMs: number): Promise<Round> => {
    const { target, ratePerSecond } = driven[index] as Driven;
    const round = await driveOnce(target, scenario, { connections, durationMs, ratePerSecond });
    const failures = series[index]?.failures ?? {};
    for (const [what, count] of Object.entries(round.failures)) failures[what] = (failures[what] ?? 0) + count;
    onLoad();
    return round;
  };
  for (const index of driven.keys()) await turn(index, warmUpMs);
  for (let round = 0; round < rounds; round += 1) {
    for (const position of driven.keys()) {
      const index = (position + round) % driven.length;
      series[index]?.rounds.push(await turn(index, roundMs));
    }
  }
  return series;
}

async function driveOnce(target: RunningTarget, scenario: Scenario, pace: Pace): Promise<Round> {
  const processes = Object.entries(target.pids);
  const before = processes.map(([, pid]) => cpuTimeUs(pid));
  const ticksBefore = processorTicks();
  const result = await target.drive(scenario, pace);
  const cpuUs = processes.map(([name, pid], index) => [
    name,
    (cpuTimeUs(pid) - (before[index] ?? Number.NaN)) / result.answered,
  ]);
  const ticks = processorTicks();
  return {
    ...result,
    ratePerSecond: result.answered / result.seconds,
    cpuUs: Object.fromEntries(cpuUs),
    stolenPercent: (100 * (ticks.stolen - ticksBefore.stolen)) / (ticks.all - ticksBefore.all),
  };
}

/** The median over the rounds of a series. */
export function medianOf({ rounds }: Series, value: (round: Round) => number): number {
  return median(rounds.map(value));
}

/** The rates of a series relative to another one, round by round. */
export const rateRatios = (series: Series, base: Series): number[] =>
  ratios(series, base, ({ ratePerSecond }) => ratePerSecond);

/** The values of a series relative to another one, round by round. */
export function ratios(series: Series, base: Series, value: (round: Round) => number): number[] {
  return series.rounds.map((round, index) => {
    const other = base.rounds[index];
    return value(round) / (other ? value(other) : Number.NaN);
  });
}

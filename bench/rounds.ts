import { cpuTimeUs, processorTicks } from './cpu-time.ts';
import type { Pace } from './drive.ts';
import { median } from './statistics.ts';
import type { LoadResult } from './tally.ts';
import type { RunningTarget } from './targets.ts';
import type { Scenario } from './workload.ts';

/** How long is measured. */
export interface Rounds {
  readonly rounds: number;
  readonly roundMs: number;
  /** Before the first round, on each target; not measured. */
  readonly warmUpMs: number;
}

/** How many times load is put on each target. */
export const loadsOf = ({ rounds }: Rounds): number => 1 + rounds;

/** What one round on one target gave. */
export interface Round extends LoadResult {
  readonly ratePerSecond: number;
  /** Processor time per request, by process; microseconds, NaN where it cannot be told. */
  readonly cpuUs: Readonly<Record<string, number>>;
  /** What part of the processors' time the host gave to others meanwhile; percent, NaN where it cannot be told. */
  readonly stolenPercent: number;
}

/** All rounds of a scenario on a target. */
export interface Series {
  readonly target: string;
  readonly rounds: readonly Round[];
  /** Of the warm-up too. */
  readonly failures: Readonly<Record<string, number>>;
}

/** What is driven: a target, and at which rate; undefined: as fast as it answers. */
export interface Driven {
  readonly target: RunningTarget;
  readonly ratePerSecond?: number;
}

/**
 * Puts a scenario's load on targets in turn, round by round, so that whatever else happens on the machine happens to all;
 * who comes first changes with each round.
 *
 * @param onLoad is told after each of the `loadsOf(rounds)` loads on each target
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
    for (const place of driven.keys()) {
      const index = (place + round) % driven.length;
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

/** The middle of what the rounds of a series gave. */
export function medianOf({ rounds }: Series, value: (round: Round) => number): number {
  return median(rounds.map(value));
}

/** What part of another series' rate a series reaches, round by round. */
export const rateRatios = (series: Series, base: Series): number[] =>
  ratios(series, base, ({ ratePerSecond }) => ratePerSecond);

/** What part of another series' value a series has, round by round. */
export function ratios(series: Series, base: Series, value: (round: Round) => number): number[] {
  return series.rounds.map((round, index) => {
    const other = base.rounds[index];
    return value(round) / (other ? value(other) : Number.NaN);
  });
}

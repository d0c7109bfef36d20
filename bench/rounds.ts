import type { LoadResult, Pace } from './drive.ts';
import { cpuTimeUs } from './processes.ts';
import type { RunningTarget } from './targets.ts';
import type { Scenario } from './workload.ts';

export interface Rounds {
  readonly rounds: number;
  readonly roundMs: number;
  /** The unmeasured time before the first round of each target. */
  readonly warmUpMs: number;
}

/** The result of a round on a target. */
export interface Round extends LoadResult {
  readonly ratePerSecond: number;
  /** Processor time per request, by process; microseconds, NaN if unknown. */
  readonly cpuUs: Readonly<Record<string, number>>;
}

/** The rounds on a target. */
export interface Series {
  readonly target: string;
  readonly rounds: Round[];
  /** The failures by kind, including those of the warm-up. */
  readonly failures: Record<string, number>;
}

/** A measurement on two targets, and its goal. */
export interface Comparison {
  readonly name: string;
  readonly scenario: Scenario;
  readonly connections: number;
  /** The rates of open loops; undefined: as fast as possible. */
  readonly ratesPerSecond?: readonly [base: number, target: number];
  /** The minimum rate, relative to the base's. */
  readonly minRate?: number | undefined;
  /** The maximum p99, relative to the base's. If it is set, p99 is compared instead of the rate. */
  readonly maxP99?: number;
}

/** A comparison and its results. */
export interface Compared extends Comparison {
  readonly series: readonly [base: Series, target: Series];
}

/**
 * Drives two targets alternately, round by round, so that disturbances by the machine affect both. Each round swaps their order.
 */
export async function compare(
  comparison: Comparison,
  targets: readonly [base: RunningTarget, target: RunningTarget],
  { rounds, roundMs, warmUpMs }: Rounds,
): Promise<Compared> {
  const { name, scenario, connections, ratesPerSecond } = comparison;
  console.error(name);
  const startSeries = ({ name }: RunningTarget): Series => ({ target: name, rounds: [], failures: {} });
  const series = [startSeries(targets[0]), startSeries(targets[1])] as const;
  const turn = async (index: 0 | 1, durationMs: number): Promise<Round> => {
    const pace = { connections, durationMs, ratePerSecond: ratesPerSecond?.[index] };
    const round = await driveOnce(targets[index], scenario, pace);
    const { failures } = series[index];
    for (const [what, count] of Object.entries(round.failures)) failures[what] = (failures[what] ?? 0) + count;
    return round;
  };
  for (const index of [0, 1] as const) await turn(index, warmUpMs);
  await takeTurns(rounds, async (index) => {
    series[index].rounds.push(await turn(index, roundMs));
  });
  return { ...comparison, series };
}

/** Lets two sides take turns, round by round. Each round swaps their order. */
export async function takeTurns(rounds: number, turn: (index: 0 | 1) => Promise<void>): Promise<void> {
  for (let round = 0; round < rounds; round += 1)
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) await turn(index);
}

async function driveOnce({ pids, drive }: RunningTarget, scenario: Scenario, pace: Pace): Promise<Round> {
  const cpuBefore = Object.entries(pids).map(([name, pid]) => ({ name, pid, timeUs: cpuTimeUs(pid) }));
  const result = await drive(scenario, pace);
  const cpuUs = cpuBefore.map(({ name, pid, timeUs }) => [name, (cpuTimeUs(pid) - timeUs) / result.answered]);
  return { ...result, ratePerSecond: result.answered / result.seconds, cpuUs: Object.fromEntries(cpuUs) };
}

import type { LoadedDatabase } from './growth-database.ts';
import type { Cost, Measurement } from './growth-measure.ts';
import { number, spread, table } from './report.ts';
import { median } from './statistics.ts';

/** The maximum time of a request with many leads, relative to few. */
const MAX_RATIO = 1.2;

/** The time of calls with few and with many leads, as Markdown. */
export function growthTable(databases: readonly LoadedDatabase[], measurements: readonly Measurement[]): string {
  const rows = measurements.map((measurement) => [measurement.name, ...timesOf(measurement)]);
  const bytes = ['bytes per lead on disk', ...databases.map(({ bytesPerLead }) => number(bytesPerLead, 0)), ''];
  return table(['', ...databases.map(sizeOf), 'ratio'], ['---'], [...rows, bytes]);
}

/** The time and processor time of requests with few and with many leads, as Markdown. */
export function requestTable(databases: readonly LoadedDatabase[], measurements: readonly Measurement[]): string {
  const rows = measurements.map((measurement) => [
    measurement.name,
    ...timesOf(measurement),
    median(ratios(measurement, ({ ms }) => ms)) <= MAX_RATIO ? 'met' : '**not met**',
    ...bothOf(measurement, ({ cpuUs }) => cpuUs).map((value) => number(value, 0)),
    spread(ratios(measurement, ({ cpuUs }) => cpuUs)),
  ]);
  const sizesIn = (unit: string) => databases.map((database) => `${sizeOf(database)}, ${unit}`);
  const heads = ['', ...sizesIn('ms'), 'ratio', `at most ${MAX_RATIO}`, ...sizesIn('µs'), 'ratio'];
  return table(heads, ['---'], rows);
}

const sizeOf = ({ size }: LoadedDatabase): string => `${number(size, 0)} leads`;

/** Both times, and their ratio. */
const timesOf = (measurement: Measurement): string[] => [
  ...bothOf(measurement, ({ ms }) => ms).map((value) => value.toPrecision(3)),
  spread(ratios(measurement, ({ ms }) => ms)),
];

/** Medians of the rounds, small and large. */
function bothOf({ rounds }: Measurement, value: (cost: Cost) => number): number[] {
  return [median(rounds.map(([small]) => value(small))), median(rounds.map(([, large]) => value(large)))];
}

/** Large by small, within a round, because a slow machine slows both. */
function ratios({ rounds }: Measurement, value: (cost: Cost) => number): number[] {
  return rounds.map(([small, large]) => value(large) / value(small));
}

import type { LoadedDatabase } from './growth-database.ts';
import type { Cost, Measurement } from './growth-measure.ts';
import { number, spread, table } from './report.ts';
import { medianOf, rateRatios, type Series } from './rounds.ts';
import { median } from './statistics.ts';

/** What a call costs with few leads and with many, as Markdown. */
export function growthTable(databases: readonly LoadedDatabase[], measurements: readonly Measurement[]): string {
  const sizes = databases.map(({ size }) => `${number(size, 0)} leads`);
  const rows = measurements.map((measurement) => [
    measurement.name,
    ...bothOf(measurement, ({ ms }) => ms).map(milliseconds),
    spread(ratios(measurement, ({ ms }) => ms)),
  ]);
  const bytes = ['bytes per lead on disk', ...databases.map(({ bytesPerLead }) => number(bytesPerLead, 0)), ''];
  return table(['', ...sizes, 'ratio'], ['---'], [...rows, bytes]);
}

/**
 * The same of requests, with what of the processor they take.
 *
 * @param atMost the target of a request's time
 */
export function requestTable(
  databases: readonly LoadedDatabase[],
  measurements: readonly Measurement[],
  atMost: number,
): string {
  const sizesIn = (unit: string) => databases.map(({ size }) => `${number(size, 0)} leads, ${unit}`);
  const rows = measurements.map((measurement) => {
    const measured = ratios(measurement, ({ ms }) => ms);
    return [
      measurement.name,
      ...bothOf(measurement, ({ ms }) => ms).map(milliseconds),
      spread(measured),
      median(measured) <= atMost ? 'met' : '**not met**',
      ...bothOf(measurement, ({ cpuUs }) => cpuUs).map((value) => number(value, 0)),
      spread(ratios(measurement, ({ cpuUs }) => cpuUs)),
    ];
  });
  const heads = ['', ...sizesIn('ms'), 'ratio', `at most ${atMost}`, ...sizesIn('µs'), 'ratio'];
  return table(heads, ['---'], rows);
}

/** What part of the rate with few leads is to be reached with many. */
const MIN_RATE = 0.8;

/** Creations as fast as they are answered, with few leads and with many, as Markdown. */
export function loadTable(all: readonly Series[]): string {
  const [few] = all;
  if (!few) throw new Error('nothing was measured');
  const rows = all.map((series) => {
    const rates = rateRatios(series, few);
    return [
      series.target,
      number(
        medianOf(series, ({ ratePerSecond }) => ratePerSecond),
        0,
      ),
      number(
        medianOf(series, ({ p99Ms }) => p99Ms),
        1,
      ),
      number(
        medianOf(series, ({ cpuUs }) => cpuUs.core ?? Number.NaN),
        0,
      ),
      number(
        medianOf(series, ({ cpuUs }) => cpuUs.gateway ?? Number.NaN),
        0,
      ),
      ...(series === few ? ['', ''] : [spread(rates), median(rates) >= MIN_RATE ? 'met' : '**not met**']),
      Object.entries(series.failures)
        .map(([what, count]) => `${count} ${what}`)
        .join(', '),
    ];
  });
  const heads = ['', 'a second', 'p99, ms', 'core, µs', 'gateway, µs', 'of the rate', `at least ${MIN_RATE}`, 'failed'];
  return table(heads, ['---'], rows);
}

/** Medians of the rounds, small and large. */
function bothOf({ rounds }: Measurement, value: (cost: Cost) => number): number[] {
  return [median(rounds.map(([small]) => value(small))), median(rounds.map(([, large]) => value(large)))];
}

/** Large by small, of the same round: what slows the machine down for a while slows both. */
function ratios({ rounds }: Measurement, value: (cost: Cost) => number): number[] {
  return rounds.map(([small, large]) => value(large) / value(small));
}

const milliseconds = (value: number): string => value.toPrecision(3);

import { medianOf, type Round, rateRatios, type Series } from './rounds.ts';
import { median } from './statistics.ts';

/** A target: a minimum or a maximum of a measured value. */
export interface Goal {
  readonly about: string;
  /** The measured values, one per round. */
  readonly measured: readonly number[];
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** A row of a table. */
interface Row {
  readonly name: string;
  readonly series: Series;
  /** The series that it is compared with. */
  readonly base?: Series | undefined;
}

/** The measurements on one database. */
export interface Section {
  readonly title: string;
  /** The target that rates are compared with. */
  readonly base: string;
  readonly rows: Row[];
  readonly goals: Goal[];
}

/** The rows of one measurement, compared with the target `baseName`. */
export function rowsOf(name: string, all: readonly Series[], baseName: string): Row[] {
  const base = all.find(({ target }) => target === baseName);
  return all.map((series) => ({ name, series, base: series === base ? undefined : base }));
}

/** The series of a target. */
export const seriesOf = (target: { readonly name: string } | undefined, all: readonly Series[]): Series | undefined =>
  all.find((series) => series.target === target?.name);

/** A section's table, as Markdown. */
export function sectionTable({ rows, base: baseName }: Section): string {
  // Processes with a known processor time, in the order of their first appearance.
  const processes = [
    ...new Set(
      rows.flatMap(({ series }) =>
        series.rounds.flatMap(({ cpuUs }) => Object.keys(cpuUs).filter((name) => Number.isFinite(cpuUs[name]))),
      ),
    ),
  ];
  const heads = ['', 'target', 'requests/s', 'p50 ms', 'p99 ms', `of ${baseName}`];
  const cells = rows.map(({ name, series, base }) => {
    const middle = (value: (round: Round) => number, digits: number) => number(medianOf(series, value), digits);
    return [
      name,
      series.target,
      middle(({ ratePerSecond }) => ratePerSecond, 0),
      middle(({ p50Ms }) => p50Ms, 1),
      middle(({ p99Ms }) => p99Ms, 1),
      base ? spread(rateRatios(series, base)) : '',
      ...processes.map((process) => middle(({ cpuUs }) => cpuUs[process] ?? Number.NaN, 0)),
      middle(({ stolenPercent }) => stolenPercent, 1),
    ];
  });
  return table([...heads, ...processes.map((process) => `${process} µs`), 'stolen %'], ['---', '---'], cells);
}

/** The goals, and whether they are met, as Markdown. */
export function goalTable(goals: readonly Goal[]): string {
  const cells = goals.map(({ about, measured, atLeast, atMost }) => {
    const value = median(measured);
    const isMet = value >= (atLeast ?? Number.NEGATIVE_INFINITY) && value <= (atMost ?? Number.POSITIVE_INFINITY);
    const goal = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
    return [about, goal, spread(measured), isMet ? 'met' : '**not met**'];
  });
  return table(['', 'target', 'measured', ''], ['---', '---', '---', '---'], cells);
}

/** The failed requests, a line of Markdown for each kind. */
export function failureLines({ rows }: Section): string[] {
  return rows.flatMap(({ name, series: { target, failures } }) =>
    Object.entries(failures).map(([what, times]) => `- ${name}, ${target}: ${what}, ${times} times`),
  );
}

/** A Markdown table; columns are right-aligned unless `left` has a rule for them. */
export function table(heads: readonly string[], left: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = heads.map((_, index) => left[index] ?? '--:');
  return [heads, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The median, with the lowest and the highest value. */
export function spread(values: readonly number[]): string {
  const [lowest, middle, highest] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    number(value, value < 10 ? 2 : 0),
  );
  return values.length > 1 ? `${middle} (${lowest}–${highest})` : `${middle}`;
}

/** Formats a number; empty if it is not finite. */
export function number(value: number, digits: number): string {
  if (!Number.isFinite(value)) return '';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

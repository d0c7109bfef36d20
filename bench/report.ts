import { medianOf, type Round, rateRatios, type Series } from './rounds.ts';
import { median } from './statistics.ts';

/** What a number has to reach, or to stay below. */
export interface Goal {
  readonly about: string;
  /** What was measured, one number per round. */
  readonly measured: readonly number[];
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit?: string;
}

/** A series in a table: what it is, and what it is compared to. */
interface Row {
  readonly name: string;
  readonly series: Series;
  /** Undefined: it is what the others are compared to, or nothing is. */
  readonly base?: Series | undefined;
}

/** What was measured on one kind of database. */
export interface Section {
  readonly title: string;
  /** What rates are compared to. */
  readonly base: string;
  readonly rows: Row[];
  readonly goals: Goal[];
}

/** The rows of what was measured in turn, compared to the target of a name. */
export function rowsOf(name: string, all: readonly Series[], baseName: string): Row[] {
  const base = all.find(({ target }) => target === baseName);
  return all.map((series) => ({ name, series, base: series === base ? undefined : base }));
}

/** A section's table, as Markdown. */
export function sectionTable({ rows, base: baseName }: Section): string {
  // Processes whose time can be told, in the order in which they first come up.
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

/** Which goals are met, as Markdown. */
export function goalTable(goals: readonly Goal[]): string {
  const cells = goals.map(({ about, measured, atLeast, atMost, unit = '' }) => {
    const value = median(measured);
    const isMet = value >= (atLeast ?? Number.NEGATIVE_INFINITY) && value <= (atMost ?? Number.POSITIVE_INFINITY);
    const goal = atLeast === undefined ? `at most ${atMost}${unit}` : `at least ${atLeast}${unit}`;
    return [about, goal, `${spread(measured)}${unit}`, isMet ? 'met' : '**not met**'];
  });
  return table(['', 'target', 'measured', ''], ['---', '---', '---', '---'], cells);
}

/** What did not go as it should, a line of Markdown for each. */
export function failureLines({ rows }: Section): string[] {
  return rows.flatMap(({ name, series: { target, failures } }) =>
    Object.entries(failures).map(([what, times]) => `- ${name}, ${target}: ${what}, ${times} times`),
  );
}

/** Rows as Markdown; numbers stand right, but for the columns that `left` says otherwise of. */
export function table(heads: readonly string[], left: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = heads.map((_, index) => left[index] ?? '--:');
  return [heads, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The middle of some numbers, and between what they lie. */
export function spread(values: readonly number[]): string {
  const [lowest, middle, highest] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    number(value, value < 10 ? 2 : 0),
  );
  return values.length > 1 ? `${middle} (${lowest}–${highest})` : `${middle}`;
}

/** Empty for what is none. */
export function number(value: number, digits: number): string {
  if (!Number.isFinite(value)) return '';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

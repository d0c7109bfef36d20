import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Compared, Round, Series } from './rounds.ts';

/** Prints lines of Markdown, and an empty one. */
export function print(...lines: string[]): void {
  console.log(`${lines.join('\n')}\n`);
}

/** Describes the software and the machine, one line each. */
export function describeMachine(): string[] {
  const findVersion = (name: string) =>
    JSON.parse(readFileSync(join(import.meta.dirname, '../node_modules', name, 'package.json'), 'utf8')).version;
  return [
    `- Node ${process.versions.node}, SQLite ${process.versions.sqlite}, Fastify ${findVersion('fastify')}, ` +
      `Connect ${findVersion('@connectrpc/connect')}`,
    `- ${availableParallelism()} cores (${cpus()[0]?.model}), ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
  ];
}

/** Returns a table with the results of both targets of each comparison, and their ratio with its goal. */
export function comparisonTable(all: readonly Compared[]): string {
  const everyRound = all.flatMap(({ series }) => series.flatMap(({ rounds }) => rounds));
  const processes = [...new Set(everyRound.flatMap(({ cpuUs }) => Object.keys(cpuUs)))];
  const formatResults = ({ target, rounds }: Series): string[] => {
    const middle = (value: (round: Round) => number, digits: number) => number(median(rounds.map(value)), digits);
    return [
      target,
      middle(({ ratePerSecond }) => ratePerSecond, 0),
      middle(({ p50Ms }) => p50Ms, 1),
      middle(({ p99Ms }) => p99Ms, 1),
      ...processes.map((process) => middle(({ cpuUs }) => cpuUs[process] ?? Number.NaN, 0)),
    ];
  };
  const rows = all.flatMap(({ name, series: [base, target], minRate, maxP99 }) => {
    const key = maxP99 === undefined ? 'ratePerSecond' : 'p99Ms';
    const ratios = target.rounds.map((round, index) => round[key] / (base.rounds[index] as Round)[key]);
    const middle = median(ratios);
    const [ratio, lowest, highest] = [middle, Math.min(...ratios), Math.max(...ratios)].map((each) => number(each, 2));
    const goals = [
      minRate === undefined ? '' : `at least ${number(minRate, 2)}: ${verdict(middle >= minRate)}`,
      maxP99 === undefined ? '' : atMost(maxP99, middle),
    ];
    return [
      [name, ...formatResults(base), '', ''],
      [name, ...formatResults(target), `${ratio} (${lowest}–${highest})`, goals.join('')],
    ];
  });
  const costs = processes.map((process) => `${process} µs`);
  return table(['', 'target', 'requests/s', 'p50 ms', 'p99 ms', ...costs, 'ratio', 'goal'], 2, rows);
}

const verdict = (isMet: boolean): string => (isMet ? 'met' : '**not met**');

/** Returns a goal, and whether a value meets it. */
export const atMost = (goal: number, value: number): string => `at most ${number(goal, 2)}: ${verdict(value <= goal)}`;

/** Returns a line of Markdown for each kind of failed requests. */
export function failureLines(all: readonly Compared[]): string[] {
  return all.flatMap(({ name, series }) =>
    series.flatMap(({ target, failures }) =>
      Object.entries(failures).map(([what, times]) => `- ${name}, ${target}: ${what}, ${times} times`),
    ),
  );
}

/** Returns a Markdown table whose first columns are left-aligned. */
export function table(heads: readonly string[], leftColumns: number, rows: readonly (readonly string[])[]): string {
  const rule = heads.map((_, index) => (index < leftColumns ? '---' : '--:'));
  return [heads, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Formats a number; returns an empty text if it is not finite. */
export function number(value: number, digits: number): string {
  if (!Number.isFinite(value)) return '';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Returns the middle value, or the upper one of the middle two; NaN without values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

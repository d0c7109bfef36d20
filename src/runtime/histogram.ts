import type { Metric, Registry } from 'prom-client';

/** Upper bounds of durations; seconds. */
export const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Upper bounds of how many go together. */
export const SIZES = [1, 2, 4, 8, 16, 32, 64, 128];

interface Series {
  /** How many values lie within each bound and beyond the one before it; the last: beyond all. */
  readonly counts: number[];
  sum: number;
}

interface Description<Label extends string> {
  readonly name: string;
  readonly help: string;
  /** One or two. Whatever observes must see to it that their values are few. */
  readonly labels: readonly [Label, Label?];
  readonly bounds: readonly number[];
}

/**
 * A Prometheus histogram with one or two labels. The registry's own takes two microseconds for a value, because it makes a
 * text of the labels each time; a request has several, and here they cost a tenth of that.
 */
export class Histogram<Label extends string = string> {
  readonly #description: Description<Label>;
  readonly #series = new Map<string, Map<string, Series>>();

  constructor(registry: Registry, description: Description<Label>) {
    this.#description = description;
    // The registry asks for no more of a metric than its name and what it gives.
    registry.registerMetric({ name: description.name, get: async () => this.#collect() } as unknown as Metric);
  }

  /** @param second the second label's value, if there is one */
  observe(value: number, first: string, second = ''): void {
    const series = this.#series.get(first)?.get(second) ?? this.begin(first, second);
    const { bounds } = this.#description;
    let place = 0;
    while (place < bounds.length && value > (bounds[place] as number)) place += 1;
    series.counts[place] = (series.counts[place] as number) + 1;
    series.sum += value;
  }

  /** Shows a series before its first value: a rate needs two points, and the first fault is not to be missed. */
  begin(first: string, second = ''): Series {
    const bySecond = this.#series.get(first) ?? new Map<string, Series>();
    this.#series.set(first, bySecond);
    const series = bySecond.get(second) ?? { counts: Array(this.#description.bounds.length + 1).fill(0), sum: 0 };
    bySecond.set(second, series);
    return series;
  }

  #collect() {
    const { name, help, labels, bounds } = this.#description;
    const values = [...this.#series].flatMap(([first, bySecond]) =>
      [...bySecond].flatMap(([second, { counts, sum }]) => {
        const own = { [labels[0]]: first, ...(labels[1] !== undefined && { [labels[1]]: second }) };
        let count = 0;
        const buckets = counts.map((there, place) => {
          count += there;
          return { metricName: `${name}_bucket`, labels: { ...own, le: bounds[place] ?? '+Inf' }, value: count };
        });
        return [
          ...buckets,
          { metricName: `${name}_sum`, labels: own, value: sum },
          { metricName: `${name}_count`, labels: own, value: count },
        ];
      }),
    );
    return { name, help, type: 'histogram', values };
  }
}

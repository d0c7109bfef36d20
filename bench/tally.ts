import { createHistogram } from 'node:perf_hooks';

/** The result of a load. */
export interface LoadResult {
  /** The number of expected responses. */
  readonly answered: number;
  /** The numbers of all other results, by kind. */
  readonly failures: Readonly<Record<string, number>>;
  /** From the start of the load to its end, or to the last response after that. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Counts the results of requests. Times are those of `performance.now()`. */
export class Tally {
  readonly #latenciesUs = createHistogram();
  readonly #failures: Record<string, number> = {};
  #answered = 0;
  #lastAnswer = 0;

  answered(due: number, now: number): void {
    this.#answered += 1;
    this.#lastAnswer = now;
    this.#latenciesUs.record(Math.max(1, Math.round((now - due) * 1000)));
  }

  failed(reason: string): void {
    this.#failures[reason] = (this.#failures[reason] ?? 0) + 1;
  }

  /** @param start the start of the load; `end`: its end */
  result(start: number, end: number): LoadResult {
    return {
      answered: this.#answered,
      failures: this.#failures,
      seconds: (Math.max(this.#lastAnswer, end) - start) / 1000,
      p50Ms: this.#latenciesUs.percentile(50) / 1000,
      p99Ms: this.#latenciesUs.percentile(99) / 1000,
    };
  }
}

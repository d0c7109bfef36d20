import { nextRetentionTime } from '../domain/retention.ts';
import type { Changing } from './dependencies.ts';

/**
 * The turns of the cores, and the time that retention goes by. Both are one record: a core has a turn if it moves the time,
 * which it does once the time that it has seen was not moved by another for so long. So the time moves by what has passed,
 * however many cores there are and however often they start.
 */
export class RetentionTurns {
  readonly #deps: Changing;
  readonly #idleMs: number;
  readonly #now: () => number;
  #seen: { readonly version: number; readonly at: number } | undefined;
  /** As it was seen last; null: there was none. */
  time: Date | null = null;

  /** @param now a clock that nobody sets; milliseconds */
  constructor(deps: Changing, idleMs: number, now = () => performance.now()) {
    this.#deps = deps;
    this.#idleMs = idleMs;
    this.#now = now;
  }

  /**
   * Returns the time that a turn of this process goes by: never after its clock. Null: it is not its turn.
   *
   * @param first the time to begin with, if there is none; null: none yet
   */
  async next(first: Date | null): Promise<Date | null> {
    const { store, clock: readClock } = this.#deps;
    const found = await store.findRetentionTime();
    const at = this.#now();
    const seen = this.#seen;
    this.time = found?.time ?? null;
    if (!found?.time) {
      if (first) await store.putRetentionTime(found?.version ?? null, first);
      return null;
    }
    if (seen?.version !== found.version) {
      this.#seen = { version: found.version, at };
      return null;
    }
    if (at - seen.at < this.#idleMs) return null;
    // Not for all of a long silence: only for the last of it is it likely that the clock was right.
    const elapsedMs = Math.min(at - seen.at, 2 * this.#idleMs);
    const clock = readClock().getTime();
    const time = new Date(nextRetentionTime(found.time.getTime(), clock, elapsedMs));
    if (!(await store.putRetentionTime(found.version, time))) return null;
    this.#seen = { version: found.version + 1, at: this.#now() };
    this.time = time;
    return new Date(Math.min(time.getTime(), clock));
  }
}

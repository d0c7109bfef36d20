import { nextRetentionTime } from '../domain/retention.ts';
import type { Changing } from './dependencies.ts';

/**
 * The lease of the cores on retention, and the retention time, in one record. A core takes the lease by advancing the
 * time, and may do so once it has seen the same time for a while. The time therefore advances with the elapsed time,
 * however many cores there are and however often they start.
 */
export class RetentionLease {
  readonly #deps: Changing;
  readonly #idleMs: number;
  readonly #now: () => number;
  #seen: { readonly version: number; readonly at: number } | undefined;
  /** The time last seen; null: there was none. */
  time: Date | null = null;

  /** @param now a monotonic clock; milliseconds */
  constructor(deps: Changing, idleMs: number, now = () => performance.now()) {
    this.#deps = deps;
    this.#idleMs = idleMs;
    this.#now = now;
  }

  /**
   * Takes the lease for this process. Returns the retention time, never later than its clock. Null: another process has the lease.
   *
   * @param first the initial time, if none is stored; null: not known yet
   */
  async take(first: Date | null): Promise<Date | null> {
    const { store, clock: readClock } = this.#deps;
    const found = await store.findRetentionTime();
    const now = this.#now();
    const seen = this.#seen;
    this.time = found?.time ?? null;
    if (!found?.time) {
      if (first) await store.putRetentionTime(found?.version ?? null, first);
      return null;
    }
    if (seen?.version !== found.version) {
      this.#seen = { version: found.version, at: now };
      return null;
    }
    if (now - seen.at < this.#idleMs) return null;
    // After a long silence, only the last part counts: the clock was probably right only then.
    const elapsedMs = Math.min(now - seen.at, 2 * this.#idleMs);
    const clock = readClock().getTime();
    const time = new Date(nextRetentionTime(found.time.getTime(), clock, elapsedMs));
    if (!(await store.putRetentionTime(found.version, time))) return null;
    this.#seen = { version: found.version + 1, at: this.#now() };
    this.time = time;
    return new Date(Math.min(time.getTime(), clock));
  }
}

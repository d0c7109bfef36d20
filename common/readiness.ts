import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { READINESS_CHECK_INTERVAL_MS } from './deadlines.ts';
import { errorSummary } from './error-summary.ts';

/** How often a lasting fault is logged again; milliseconds. */
const LOG_INTERVAL_MS = 30_000;

/**
 * The response header of a core's health check while the core drains. Probes must see it as not serving, but it still executes calls, so
 * connected clients need not react.
 */
export const DRAINING_HEADER = 'lead-intake-draining';

/**
 * Checks once a second whether a dependency is available, and caches the result, so the cost does not depend on the number of callers. Logs
 * a fault when it begins, every 30 seconds while it lasts, and when it ends.
 */
export class Readiness {
  readonly #check: () => Promise<void>;
  readonly #log: (fault: string | undefined) => void;
  readonly #first = Promise.withResolvers<string | undefined>();
  /** The check in flight, or the last one. */
  #latest = this.#first.promise;
  readonly #closing = new AbortController();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #changeCount = 0;

  /**
   * @param what the name of the dependency in the log
   * @param check rejects with the reason while the dependency is unavailable
   */
  constructor(what: string, check: () => Promise<void>, log: Logger) {
    this.#check = check;
    this.#log = faultLog(what, log);
  }

  /** Starts checking. A process that is still starting would mistake its own delay for a fault. */
  start(): void {
    this.#checkLoop();
  }

  /** Returns why the dependency is unavailable, or undefined. Waits for a check in flight. */
  fault(): Promise<string | undefined> {
    return this.#latest;
  }

  get changeCount(): number {
    return this.#changeCount;
  }

  /** Resolves when `changeCount` differs from `since`, or the signal aborts. */
  async changed(since: number, signal: AbortSignal): Promise<void> {
    if (since === this.#changeCount) await once(this.#changes, 'change', { signal }).catch(() => {});
  }

  close(): void {
    this.#closing.abort();
    this.#first.resolve('readiness checks have stopped');
  }

  async #checkLoop(): Promise<void> {
    const { signal } = this.#closing;
    for (let last: string | undefined; !signal.aborted; ) {
      const began = performance.now();
      this.#latest = this.#check().then(
        () => undefined,
        (error) => withoutCredentials(errorSummary(error)),
      );
      this.#first.resolve(this.#latest);
      const fault = await this.#latest;
      if (signal.aborted) return;
      this.#log(fault);
      if ((fault === undefined) !== (last === undefined)) {
        this.#changeCount += 1;
        this.#changes.emit('change');
      }
      last = fault;
      const restMs = READINESS_CHECK_INTERVAL_MS - (performance.now() - began);
      await sleep(Math.max(0, restMs), undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

function faultLog(what: string, log: Logger): (fault: string | undefined) => void {
  let logged: { readonly reason: string; readonly at: number } | undefined;
  let since = 0;
  return (reason) => {
    const now = performance.now();
    if (reason === undefined) {
      if (logged) log.info({ lastedMs: Math.round(now - since) }, `${what} is available again`);
      logged = undefined;
      return;
    }
    if (!logged) since = now;
    if (logged?.reason === reason && now - logged.at < LOG_INTERVAL_MS) return;
    logged = { reason, at: now };
    log.warn({ reason, lastsMs: Math.round(now - since) }, `not ready: ${what} is unavailable`);
  };
}

/** Removes credentials, because drivers may repeat the address that they were given. */
const withoutCredentials = (text: string) => text.replaceAll(/\/\/[^/\s]*@/g, '//…@');

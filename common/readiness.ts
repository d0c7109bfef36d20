import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { READINESS_LOOK_MS } from './deadlines.ts';
import { errorSummary } from './error-summary.ts';

/** How often what lasts is told again; milliseconds. */
const TOLD_EVERY_MS = 30_000;

/**
 * Looks once a second whether something that a process needs is there, and keeps the answer for everybody who asks: asking
 * costs nothing, however many do. Why it is not there stands in the log at once, again while that lasts, and when it is over.
 */
export class Readiness {
  readonly #look: () => Promise<void>;
  readonly #tell: (fault: string | undefined) => void;
  readonly #first = Promise.withResolvers<string | undefined>();
  /** The look that is under way, or the last. */
  #latest = this.#first.promise;
  readonly #closing = new AbortController();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #changeCount = 0;

  /**
   * @param what what is looked at, as the log calls it
   * @param look rejects while it is not there; what with stands in the log
   */
  constructor(what: string, look: () => Promise<void>, log: Logger) {
    this.#look = look;
    this.#tell = tellOf(what, log);
  }

  /** Looks from now on. A process that is busy with its start would take its own delay for something that is away. */
  begin(): void {
    this.#lookOnAndOn();
  }

  /** What is wrong, undefined when nothing is. It is at most a second old; whoever comes while there is a look waits for that. */
  fault(): Promise<string | undefined> {
    return this.#latest;
  }

  /** How often the answer has changed. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Waits until there is another answer than there was at a count, or until a signal. */
  async changed(since: number, signal: AbortSignal): Promise<void> {
    if (since !== this.#changeCount || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const over = () => {
        this.#changes.off('change', over);
        signal.removeEventListener('abort', over);
        resolve();
      };
      this.#changes.on('change', over);
      signal.addEventListener('abort', over);
    });
  }

  /** Looks no more. */
  close(): void {
    this.#closing.abort();
    this.#first.resolve('nobody looks any more');
  }

  async #lookOnAndOn(): Promise<void> {
    const { signal } = this.#closing;
    for (let last: string | undefined; !signal.aborted; ) {
      const began = performance.now();
      this.#latest = this.#look().then(
        () => undefined,
        (error) => withoutCredentials(errorSummary(error)),
      );
      this.#first.resolve(this.#latest);
      const fault = await this.#latest;
      if (signal.aborted) return;
      this.#tell(fault);
      if ((fault === undefined) !== (last === undefined)) {
        this.#changeCount += 1;
        this.#changes.emit('change');
      }
      last = fault;
      const restMs = READINESS_LOOK_MS - (performance.now() - began);
      await sleep(Math.max(0, restMs), undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

/** Writes a line when what is wrong changes, again while it lasts, and when it is over. */
function tellOf(what: string, log: Logger): (fault: string | undefined) => void {
  let told: { readonly reason: string; readonly at: number } | undefined;
  let since = 0;
  return (reason) => {
    const now = performance.now();
    if (reason === undefined) {
      if (told) log.info({ lastedMs: Math.round(now - since) }, `${what} is there again`);
      told = undefined;
      return;
    }
    if (!told) since = now;
    if (told?.reason === reason && now - told.at < TOLD_EVERY_MS) return;
    told = { reason, at: now };
    log.warn({ reason, lastsMs: Math.round(now - since) }, `not ready: ${what} is not there`);
  };
}

/** Drivers may repeat the address that they were given. */
const withoutCredentials = (text: string) => text.replaceAll(/\/\/[^/\s]*@/g, '//…@');

import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { READINESS_LOOK_MS } from './deadlines.ts';
import { inOneLine } from './in-one-line.ts';

/** How often what lasts is told again; milliseconds. */
const TOLD_EVERY_MS = 30_000;

/**
 * Looks once a second whether something that a process needs is there, and keeps the answer for everybody who asks: asking
 * costs nothing, however many do. Why it is not there stands in the log at once, again while that lasts, and when it is over.
 */
export class Readiness {
  /** The look that is under way, or the last. */
  #latest: Promise<string | undefined> = Promise.resolve(undefined);
  readonly #closing = new AbortController();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #changeCount = 0;

  /**
   * @param what what is looked at, as the log calls it
   * @param look rejects while it is not there; what with stands in the log
   */
  constructor(what: string, look: () => Promise<void>, log: Logger) {
    this.#lookOnAndOn(look, tellOf(what, log));
  }

  /** What is wrong, undefined when nothing is. At most a second old, unless the look that is to tell takes longer. */
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
  }

  async #lookOnAndOn(look: () => Promise<void>, tell: (fault: string | undefined) => void): Promise<void> {
    const { signal } = this.#closing;
    for (let last: string | undefined; !signal.aborted; ) {
      this.#latest = look().then(
        () => undefined,
        (error) => withoutCredentials(inOneLine(error)),
      );
      const fault = await this.#latest;
      if (signal.aborted) return;
      tell(fault);
      if ((fault === undefined) !== (last === undefined)) {
        this.#changeCount += 1;
        this.#changes.emit('change');
      }
      last = fault;
      await sleep(READINESS_LOOK_MS, undefined, { signal, ref: false }).catch(() => {});
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

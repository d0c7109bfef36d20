import { AsyncLocalStorage } from 'node:async_hooks';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { here, type SimulatedNode } from './machine.ts';

/* Replacements of Node's clocks and timers by those of the machine. */

const MAX_TIMER_MS = 2 ** 31 - 1;

const RealDate = Date;

class SimulatedDate extends RealDate {
  constructor(...values: []) {
    if (values.length > 0) super(...values);
    else super(SimulatedDate.now());
  }

  static override now(): number {
    const node = here();
    return node.machine.wallClockMs(node);
  }
}

/** The result of `setTimeout`, `setInterval` and `setImmediate`. */
class Timer {
  readonly #delayMs: number;
  readonly #repeats: boolean;
  readonly #node: SimulatedNode = here();
  readonly #callback: () => void;
  #event!: { cancel(): void };
  readonly ref = () => this;
  readonly unref = () => this;
  readonly hasRef = () => true;

  constructor(delayMs: number, callback: () => void, repeats = false) {
    this.#delayMs = delayMs;
    this.#repeats = repeats;
    const inContext = AsyncLocalStorage.snapshot();
    this.#callback = () => inContext(callback);
    this.refresh();
  }

  refresh(): this {
    this.#event?.cancel();
    const fire = () => {
      if (this.#repeats) this.refresh();
      this.#callback();
    };
    this.#event = this.#node.machine.schedule(this.#delayMs, fire, this.#node);
    return this;
  }

  close(): this {
    this.#event.cancel();
    return this;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Bounds the delay of a timer as Node does. */
const boundDelay = (delayMs: number): number => (delayMs >= 1 && delayMs <= MAX_TIMER_MS ? delayMs : 1);

type Callback = (...values: unknown[]) => void;
const clear = (timer?: Timer | null): void => void timer?.close?.();

const GLOBALS = {
  setTimeout: (callback: Callback, delayMs = 1, ...values: unknown[]) =>
    new Timer(boundDelay(Number(delayMs)), () => callback(...values)),
  setInterval: (callback: Callback, delayMs = 1, ...values: unknown[]) =>
    new Timer(boundDelay(Number(delayMs)), () => callback(...values), true),
  setImmediate: (callback: Callback, ...values: unknown[]) => new Timer(0, () => callback(...values)),
  clearTimeout: clear,
  clearInterval: clear,
  clearImmediate: clear,
};

/** Replaces `setTimeout` of `timers/promises`. */
function sleep<Value>(
  delayMs = 1,
  value?: Value,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      timer.close();
      reject(new DOMException('The operation was aborted', { name: 'AbortError', cause: signal?.reason }));
    };
    const timer = new Timer(boundDelay(delayMs), () => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    });
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Replaces `AbortSignal.timeout`. */
function timeoutSignal(delayMs: number): AbortSignal {
  const controller = new AbortController();
  new Timer(boundDelay(delayMs), () =>
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
  );
  return controller.signal;
}

function hrtime(since?: [number, number]): [number, number] {
  const elapsed = toHrtime(here().machine.nowMs);
  if (!since) return elapsed;
  const nanoseconds = (elapsed[0] - since[0]) * 1e9 + elapsed[1] - since[1];
  return [Math.floor(nanoseconds / 1e9), nanoseconds % 1e9];
}

const toHrtime = (ms: number): [number, number] => [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)];

/** Replaces Node's clocks and timers. */
export function replaceClocks(): void {
  globalThis.Date = SimulatedDate as DateConstructor;
  performance.now = () => here().machine.nowMs;
  process.hrtime = Object.assign(hrtime, { bigint: () => BigInt(Math.floor(here().machine.nowMs * 1e6)) });
  Object.assign(globalThis, GLOBALS);
  Object.assign(timers, GLOBALS);
  AbortSignal.timeout = timeoutSignal;
  Object.assign(timersPromises, {
    setTimeout: sleep,
    setImmediate: <Value>(value?: Value) => new Promise((resolve) => GLOBALS.setImmediate(() => resolve(value))),
  });
}

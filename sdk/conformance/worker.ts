import { converse, type Outcome } from './converse.ts';
import { canClockBeSet, DriverClock } from './driver-clock.ts';
import { DriverProcess } from './driver-process.ts';
import type { Variant } from './variants.ts';

/** Runs conversations sequentially, with one driver process until it violates the protocol. */
export class Worker {
  readonly #command: readonly string[];
  readonly #folder: string;
  #driver: DriverProcess | undefined;

  /**
   * @param command the driver's program and its arguments
   * @param folder its working directory
   */
  constructor(command: readonly string[], folder: string) {
    this.#command = command;
    this.#folder = folder;
  }

  /** Runs a conversation. If it fails and its caller cancels, repeats it with more time: a busy machine may have sent too late. */
  async run(variant: Variant): Promise<Outcome> {
    const outcome = await this.#runOnce(variant);
    const isCancelled = variant.calls.some(({ request }) => request.cancelAfterMs);
    return isCancelled && outcome.faults.length > 0 ? this.#runOnce(withPatience(variant)) : outcome;
  }

  #runOnce(variant: Variant): Promise<Outcome> {
    const needsClock = variant.calls.some(({ attempts }) =>
      attempts.some(({ clockJumpsSeconds }) => clockJumpsSeconds),
    );
    return needsClock ? this.#runWithClock(variant) : this.#runWithSharedDriver(variant);
  }

  async #runWithSharedDriver(variant: Variant): Promise<Outcome> {
    const driver = this.#driver ?? new DriverProcess(this.#command, this.#folder, environment());
    this.#driver = driver;
    const outcome = await converse(variant, driver, () => {});
    if (outcome.isDriverLost) {
      this.#driver = undefined;
      await driver.kill();
    }
    return outcome;
  }

  async #runWithClock(variant: Variant): Promise<Outcome> {
    if (!canClockBeSet) return { faults: [], notRun: "this machine has no libfaketime, Debian's package faketime" };
    const clock = new DriverClock();
    const driver = new DriverProcess(this.#command, this.#folder, { ...environment(), ...clock.env });
    try {
      return await converse(variant, driver, (aheadSeconds) => clock.set(aheadSeconds));
    } finally {
      await driver.kill();
      clock.remove();
    }
  }

  /** Ends the driver process and returns the faults of its shutdown. */
  async end(): Promise<readonly string[]> {
    return (await this.#driver?.end()) ?? [];
  }
}

/** Returns the conversation with five times as long until the caller cancels. */
function withPatience({ calls, ...variant }: Variant): Variant {
  return {
    ...variant,
    calls: calls.map((call) => {
      const { request, reportWithinMs = 0 } = call;
      if (!request.cancelAfterMs) return call;
      const cancelAfterMs = request.cancelAfterMs * 5;
      return { ...call, request: { ...request, cancelAfterMs }, reportWithinMs: reportWithinMs + cancelAfterMs };
    }),
  };
}

/** Removes the machine's proxy settings, because clients connect to the local machine. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:https?|all)_proxy$/i.test(name)));
}

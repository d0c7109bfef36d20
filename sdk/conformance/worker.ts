import { converse, type Outcome } from './converse.ts';
import { canClockBeSet, DriverClock } from './driver-clock.ts';
import { DriverFault, DriverProcess } from './driver-process.ts';
import type { Variant } from './variants.ts';

/** Holds one conversation after another, with one process of the driver as long as that does what it should. */
export class Worker {
  readonly #command: readonly string[];
  #driver: DriverProcess | undefined;

  /** @param command the driver's program and its arguments */
  constructor(command: readonly string[]) {
    this.#command = command;
  }

  hold(variant: Variant): Promise<Outcome> {
    const needsClock = variant.calls.some(({ attempts }) =>
      attempts.some(({ clockJumpsSeconds }) => clockJumpsSeconds),
    );
    return needsClock ? this.#holdWithClock(variant) : this.#holdAsItIs(variant);
  }

  async #holdAsItIs(variant: Variant): Promise<Outcome> {
    const driver = this.#driver ?? new DriverProcess(this.#command, environment());
    this.#driver = driver;
    try {
      return await converse(variant, driver, () => {});
    } catch (error) {
      this.#driver = undefined;
      await driver.kill();
      return outcomeOf(error);
    }
  }

  async #holdWithClock(variant: Variant): Promise<Outcome> {
    if (!canClockBeSet) return { faults: [], notRun: "this machine has no libfaketime, Debian's package faketime" };
    const clock = new DriverClock();
    const driver = new DriverProcess(this.#command, { ...environment(), ...clock.env });
    try {
      return await converse(variant, driver, (aheadSeconds) => clock.set(aheadSeconds));
    } catch (error) {
      return outcomeOf(error);
    } finally {
      await driver.kill();
      clock.remove();
    }
  }

  /** Lets the process end. */
  async end(): Promise<Outcome> {
    try {
      await this.#driver?.end();
      return { faults: [] };
    } catch (error) {
      return outcomeOf(error);
    }
  }
}

/** What a driver does wrong is what comes of a conversation; anything else is a fault of the suite. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof DriverFault) return { faults: [error.message] };
  throw error;
}

/** A proxy of this machine is none for clients that talk to itself. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:https?|all)_proxy$/i.test(name)));
}

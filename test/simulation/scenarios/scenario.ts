import type fc from 'fast-check';
import type { Simulation } from '../simulation.ts';

/** An operation or fault that a simulation can run. */
export interface Scenario<Choice = unknown> {
  /** The relative frequency. */
  readonly weight: number;
  /** The weight in lives of hours, if it differs. */
  readonly weightOfHours?: number;
  /** Whether it runs after the checks, which it would invalidate; only the first such scenario of a plan runs. */
  readonly isLast?: true;
  /** Generates the parameters. */
  readonly choice: fc.Arbitrary<Choice>;
  /** Runs the scenario and records its outcome in the history. No response of the service is an error here. */
  run(sim: Simulation, choice: Choice): Promise<void>;
  /** Whether the scenario applies to this deployment. Default: always. */
  isPossible?(sim: Simulation): boolean;
}

export const aScenario = <Choice>(happening: Scenario<Choice>): Scenario<Choice> => happening;

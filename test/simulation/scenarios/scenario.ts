import type fc from 'fast-check';
import type { Simulation } from '../simulation.ts';

/** An operation or fault that a simulation can run. */
export interface Scenario<Choice = unknown> {
  /** How often plans have it, relative to others. */
  readonly weight: number;
  /** The weight in lives of hours, if it differs. */
  readonly weightOfHours?: number;
  /** Whether it runs after the checks, which it would invalidate; only the first such scenario of a plan runs. */
  readonly isLast?: true;
  /** Generates the parameters. */
  readonly choice: fc.Arbitrary<Choice>;
  /** Runs the scenario, and records its outcome in the history. Must not throw, whatever the service answers. */
  run(sim: Simulation, choice: Choice): Promise<void>;
  /** Whether this deployment can run the scenario. Default: yes. */
  isPossible?(sim: Simulation): boolean;
}

export const aScenario = <Choice>(scenario: Scenario<Choice>): Scenario<Choice> => scenario;

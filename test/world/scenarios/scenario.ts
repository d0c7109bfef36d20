import type fc from 'fast-check';
import type { Life } from '../life.ts';

/** An operation or fault that a simulation can run. */
export interface Scenario<Choice = unknown> {
  /** The relative frequency. */
  readonly weight: number;
  /** Generates the parameters. */
  readonly choice: fc.Arbitrary<Choice>;
  /** Runs the scenario and records its outcome in the history. No response of the service is an error here. */
  happen(life: Life, choice: Choice): Promise<void>;
  /** Whether the scenario applies to this deployment. Default: always. */
  isPossible?(life: Life): boolean;
}

export const aScenario = <Choice>(happening: Scenario<Choice>): Scenario<Choice> => happening;

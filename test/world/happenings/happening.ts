import type fc from 'fast-check';
import type { Life } from '../life.ts';

/** Something that can happen in a life. */
export interface Happening<Choice = unknown> {
  /** How often it does, compared with others. */
  readonly weight: number;
  /** What of it is up to chance. */
  readonly choice: fc.Arbitrary<Choice>;
  /** Has it happen, and notes in the life's history what came of it. Nothing that the service answers is an error here. */
  happen(life: Life, choice: Choice): Promise<void>;
  /** Whether it can happen in this life; unless told, always. */
  isPossible?(life: Life): boolean;
}

export const aHappening = <Choice>(happening: Happening<Choice>): Happening<Choice> => happening;

import { describe, expect, test } from 'vitest';
import { explore } from './explorer.ts';
import {
  REPETITION_PROMISES,
  type RepetitionRules,
  type RepetitionScenario,
  repeatedChange,
} from './repeated-change.ts';

const SCENARIOS = {
  'two writers, whose attempts may be late': { writers: 2, kept: 2, isLate: true },
  'three writers, of whose changes the record keeps two': { writers: 3, kept: 2, isLate: false },
} satisfies Record<string, RepetitionScenario>;

/** Plausible but flawed designs, by a description. */
const FLAWS: Readonly<
  Record<string, { readonly rules: Partial<RepetitionRules>; readonly in: keyof typeof SCENARIOS }>
> = {
  'an attempt is repeated blindly': {
    rules: { looks: false, isConditional: false },
    in: 'three writers, of whose changes the record keeps two',
  },
  'a further attempt looks first, and writes unconditionally': {
    rules: { isConditional: false },
    in: 'two writers, whose attempts may be late',
  },
  'a change that may have been dropped from the record is made again': {
    rules: { givesUp: false },
    in: 'three writers, of whose changes the record keeps two',
  },
};

// @proves crashes-19
describe('the protocol for changing a record once', () => {
  test.each(Object.entries(SCENARIOS))(
    'keeps every promise in every state, and never gets stuck: %s',
    (name, scenario) => {
      const { states, fault } = explore(repeatedChange(scenario));

      console.info(`${name}: ${states} states`);
      expect(fault).toBeUndefined();
    },
  );

  test.each(Object.entries(FLAWS))('would undo what others wrote with this flaw: %s', (_, { rules, in: scenario }) => {
    const { fault } = explore(repeatedChange(SCENARIOS[scenario], rules));

    expect(fault?.what).toBe(Object.keys(REPETITION_PROMISES)[0]);
    expect(fault?.trace.length).toBeLessThan(12);
  });
});

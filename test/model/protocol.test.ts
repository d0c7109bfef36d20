import { describe, expect, test, vi } from 'vitest';
import { explore } from './explorer.ts';
import { FLAWS } from './flaws.ts';
import { PROMISES } from './invariants.ts';
import { leadSystem } from './lead-system.ts';
import { LATE_INSERTS, SCENARIOS } from './scenarios.ts';

// Hundreds of thousands of states take ten seconds on an idle machine, and more when suites share two cores.
vi.setConfig({ testTimeout: 240_000 });

const NOT_WITH_LATE_INSERTS = 'a refused call wrote nothing';

// @proves leads-11
describe('the protocol for creating and moving leads', () => {
  test.each(Object.entries(SCENARIOS))(
    'keeps every promise in every state, and never gets stuck: %s',
    (name, scenario) => {
      const { states, fault } = explore(leadSystem(scenario));

      console.info(`${name}: ${states} states`);
      expect(fault).toBeUndefined();
    },
  );

  test('cannot undo an insert that is carried out late, and keeps every other promise', () => {
    expect(explore(leadSystem(LATE_INSERTS)).fault?.what).toBe(NOT_WITH_LATE_INSERTS);

    const { states, fault } = explore(leadSystem(LATE_INSERTS, { without: [NOT_WITH_LATE_INSERTS] }));
    console.info(`late inserts: ${states} states`);
    expect(fault).toBeUndefined();
  });

  test.each(Object.entries(FLAWS))(
    'would break a promise with this flaw: %s',
    (_, { breaks, in: scenario, ...design }) => {
      const { fault } = explore(leadSystem(SCENARIOS[scenario], design));

      expect(fault?.what).toBe(breaks);
      // A long trace would be useless to a reader: the search must return a shortest one.
      expect(fault?.trace.length).toBeLessThan(15);
    },
  );

  test('is checked against promises, each of which a flaw breaks', () => {
    const broken = Object.values(FLAWS).map(({ breaks }) => breaks);

    expect(new Set([...broken, NOT_WITH_LATE_INSERTS])).toEqual(new Set(Object.keys(PROMISES)));
  });
});

import { expect, test } from 'vitest';
import { explore, type System } from './explorer.ts';

/** Two jugs, of 3 and 5 litres, that are filled, emptied and poured into each other. */
const jugs: System<{ readonly three: number; readonly five: number }> = {
  initial: { three: 0, five: 0 },
  *steps({ three, five }) {
    yield ['fill 3', { three: 3, five }];
    yield ['fill 5', { three, five: 5 }];
    yield ['empty 3', { three: 0, five }];
    yield ['empty 5', { three, five: 0 }];
    const [to5, to3] = [Math.min(three, 5 - five), Math.min(five, 3 - three)];
    yield ['3 to 5', { three: three - to5, five: five + to5 }];
    yield ['5 to 3', { three: three + to3, five: five - to3 }];
  },
  fault: () => undefined,
  isSettled: ({ three, five }) => three + five === 0,
};

// @proves leads-11
test('every state is visited, and no other', () => {
  // In each state at least one of the two jugs is either empty or full.
  expect(explore(jugs)).toEqual({ states: 16 });
});

test('a fault is reported with a shortest path to it', () => {
  const fault = ({ five }: { five: number }) => (five === 4 ? 'four litres' : undefined);

  expect(explore({ ...jugs, fault }).fault).toEqual({
    what: 'four litres',
    trace: ['fill 5', '5 to 3', 'empty 3', '5 to 3', 'fill 5', '5 to 3'],
  });
});

test('a state from which no settled state can be reached is a fault', () => {
  const steps = function* (state: typeof jugs.initial) {
    for (const step of jugs.steps(state)) if (!step[0].startsWith('empty')) yield step;
  };

  expect(explore({ ...jugs, steps }).fault).toEqual({ what: 'stuck', trace: ['fill 3'] });
});

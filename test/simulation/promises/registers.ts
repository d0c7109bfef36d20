import { possibleValues, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

/** Compares each read of a register with all writes to it. */
export function registerViolations({ history }: Simulation): string[] {
  const puts = Map.groupBy(history.of('put'), ({ what }) => what);
  return history.of('registerRead').flatMap(({ party, what, value, span }) => {
    const possible = possibleValues(puts.get(what) ?? [], span);
    return possible.has(value)
      ? []
      : [`${when(span)}: the ${party} reads ${value} as the ${what}, expected ${[...possible].join(' or ')}`];
  });
}

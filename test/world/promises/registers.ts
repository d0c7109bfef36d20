import { possibleValues, when } from '../history.ts';
import type { Life } from '../life.ts';

/** Compares each read of a register with all writes to it. */
export function brokenOfRegisters({ history }: Life): string[] {
  const puts = Map.groupBy(history.of('put'), ({ what }) => what);
  return history.of('shown').flatMap(({ party, what, value, span }) => {
    const possible = possibleValues(puts.get(what) ?? [], span);
    return possible.has(value)
      ? []
      : [`${when(span)}: the ${party} is shown ${value} as the ${what}, where it is ${[...possible].join(' or ')}`];
  });
}

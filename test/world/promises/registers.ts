import { possibleValues, when } from '../history.ts';
import type { Life } from '../life.ts';

/** Holds what somebody was shown of something against all that it was put to. */
export function brokenOfRegisters({ history }: Life): string[] {
  const puts = Map.groupBy(history.of('put'), ({ what }) => what);
  return history.of('shown').flatMap(({ party, what, value, span }) => {
    const possible = possibleValues(puts.get(what) ?? [], span);
    return possible.has(value)
      ? []
      : [`${when(span)}: the ${party} is shown ${value} as the ${what}, where it is ${[...possible].join(' or ')}`];
  });
}

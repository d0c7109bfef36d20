import type { Span } from '../history.ts';

/** Something that was asked of what has one state at each moment, and what came of it. */
export interface Observed<State> {
  readonly span: Span;
  /** What was asked and answered, in words. */
  readonly story: string;
  /** Whether it may also never have happened: nobody was told. */
  readonly mayBeMissing: boolean;
  /** The state after it, when it happened in this one with this outcome; undefined where it could not. The same object: it changes nothing. */
  next(state: State): State | undefined;
}

/**
 * Whether some order explains everything that was observed, in which each thing happened at a moment of its span: that it is
 * *linearizable* (Herlihy and Wing). Searched as Wing and Gong do, with the memory of Lowe.
 *
 * @param idOf the same text for states that are equal
 * @returns the story of what nothing explains, where the search came farthest; undefined when there is an order
 */
export function unexplained<State>(
  observed: readonly Observed<State>[],
  first: State,
  idOf: (state: State) => string,
): string | undefined {
  const all = observed.toSorted((a, b) => a.span.begin - b.span.begin);
  const isTaken = all.map(() => false);
  const seen = new Set<string>();
  let leastLeft = Number.POSITIVE_INFINITY;
  let farthest: { readonly state: string; readonly left: readonly Observed<State>[] } | undefined;
  return search(first, all.filter(({ mayBeMissing }) => !mayBeMissing).length) ? undefined : told();

  function search(before: State, before_left: number): boolean {
    let left = before_left;
    const taken: number[] = [];
    const take = (index: number) => {
      isTaken[index] = true;
      taken.push(index);
      if (!all[index]?.mayBeMissing) left -= 1;
    };
    // What changes nothing may as well happen as soon as it can: that keeps nothing else from happening.
    for (let hasMore = true; hasMore; ) {
      hasMore = false;
      for (const index of possible()) {
        if (isTaken[index] || all[index]?.mayBeMissing || all[index]?.next(before) !== before) continue;
        take(index);
        hasMore = true;
      }
    }
    if (left === 0) return true;
    const place = `${isTaken.map(Number).join('')} ${idOf(before)}`;
    if (!seen.has(place)) {
      seen.add(place);
      if (left < leastLeft) {
        leastLeft = left;
        farthest = { state: idOf(before), left: possible().map((index) => all[index] as Observed<State>) };
      }
      for (const index of possible()) {
        const after = all[index]?.next(before);
        if (after === undefined || after === before) continue;
        isTaken[index] = true;
        if (search(after, left - (all[index]?.mayBeMissing ? 0 : 1))) return true;
        isTaken[index] = false;
      }
    }
    for (const index of taken) isTaken[index] = false;
    return false;
  }

  /** What may be next: it had begun before anything that is left was over. */
  function possible(): number[] {
    let firstOver = Number.POSITIVE_INFINITY;
    const indexes: number[] = [];
    for (const [index, { span, mayBeMissing }] of all.entries()) {
      if (isTaken[index]) continue;
      if (span.begin > firstOver) break;
      indexes.push(index);
      if (!mayBeMissing && span.end < firstOver) firstOver = span.end;
    }
    return indexes;
  }

  function told(): string {
    return `nothing explains, where it stands like this: ${farthest?.state}\n${farthest?.left
      .map(({ story, span }) => `  ${Math.round(span.begin)}–${Math.round(span.end)} ms ${story}`)
      .join('\n')}`;
  }
}

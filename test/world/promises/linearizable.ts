import { type Span, when } from '../history.ts';

/** Something that was asked of what has one state at each moment, and what came of it. */
export interface Observed<State> {
  readonly span: Span;
  /** What was asked and answered, in words. */
  readonly story: string;
  /**
   * Undefined where somebody was told what came of it. Where nobody was, it may have happened at any moment from its begin on,
   * or never, and this is the same text for all that would change the same.
   */
  readonly guess: string | undefined;
  /** Whether it changes nothing, whenever it happens. */
  readonly isSight: boolean;
  /** The state after it, where it happened in this one with this outcome: the same one, when it changes nothing; undefined where it could not. */
  next(state: State): State | undefined;
}

/** What a search has found out; nothing, where it was given up. */
export type Verdict =
  | { readonly is: 'explained' | 'given up' }
  /** What nothing explains, in words, where the search came farthest. */
  | { readonly is: 'unexplained'; readonly story: string };

/**
 * Whether some order explains everything that was observed, in which each thing happened at one moment of its span: whether it
 * is *linearizable* (Herlihy and Wing). Searched as Wing and Gong do, with the memory that Lowe adds.
 *
 * @param idOf the same text for states that are equal
 * @param maxStates how many places are looked at before the search is given up: many times what is needed where there is an
 *   order. What nobody was told of multiplies them
 */
export function explain<State>(
  observed: readonly Observed<State>[],
  first: State,
  idOf: (state: State) => string,
  maxStates = 50_000,
): Verdict {
  const byBegin = observed.toSorted((a, b) => a.span.begin - b.span.begin);
  const told = byBegin.filter(({ guess }) => guess === undefined);
  const guessed = byBegin.filter(({ guess }) => guess !== undefined);
  const taken = new Set<Observed<State>>();
  const seen = new Set<string>();
  let farthest:
    | { readonly state: string; readonly count: number; readonly next: readonly Observed<State>[] }
    | undefined;
  if (search(first, 0)) return { is: 'explained' };
  if (seen.size >= maxStates) return { is: 'given up' };
  const { state, next = [] } = farthest ?? {};
  const stories = next.map(({ story, span }) => `  ${when(span)} ${story}`);
  const story = `nothing explains, where there is\n${state || '  nothing'}\nwhat came of\n${stories.join('\n')}`;
  return { is: 'unexplained', story };

  /** @param from which of what was told is the first that may not be taken */
  function search(state: State, from: number): boolean {
    const mine: Observed<State>[] = [];
    const take = (each: Observed<State>) => {
      taken.add(each);
      mine.push(each);
    };
    // A sight may as well have been seen as soon as it could: it keeps nothing else from happening.
    for (let count = -1; count !== mine.length; ) {
      count = mine.length;
      for (const each of possible(from).told) if (each.isSight && each.next(state)) take(each);
    }
    let firstLeft = from;
    while (firstLeft < told.length && taken.has(told[firstLeft] as Observed<State>)) firstLeft += 1;
    if (firstLeft === told.length || goesOn(state, firstLeft)) return true;
    for (const each of mine) taken.delete(each);
    return false;
  }

  function goesOn(state: State, firstLeft: number): boolean {
    const next = possible(firstLeft);
    const place = placeOf(state, firstLeft);
    if (seen.has(place) || seen.size >= maxStates) return false;
    seen.add(place);
    if (!farthest || taken.size >= farthest.count)
      farthest = { state: idOf(state), count: taken.size, next: next.told };
    // Of what would change the same, the first is as good as any.
    const guesses = new Map(next.guessed.toReversed().map((each) => [each.guess, each]));
    for (const each of [...next.told, ...guesses.values()]) {
      const after = each.next(state);
      if (after === undefined || (after === state && each.guess !== undefined)) continue;
      taken.add(each);
      if (search(after, firstLeft)) return true;
      taken.delete(each);
    }
    return false;
  }

  /** What may be next: it had begun before anything that is left was over. */
  function possible(from: number): { readonly told: Observed<State>[]; readonly guessed: Observed<State>[] } {
    const next: Observed<State>[] = [];
    let firstOver = Number.POSITIVE_INFINITY;
    for (let index = from; index < told.length; index += 1) {
      const each = told[index] as Observed<State>;
      if (each.span.begin > firstOver) break;
      if (taken.has(each)) continue;
      next.push(each);
      firstOver = Math.min(firstOver, each.span.end);
    }
    return { told: next, guessed: guessed.filter((each) => each.span.begin < firstOver && !taken.has(each)) };
  }

  /** The same for places from which the same can be reached. */
  function placeOf(state: State, firstLeft: number): string {
    const ahead: number[] = [];
    for (let index = firstLeft; index < told.length; index += 1) {
      if (taken.has(told[index] as Observed<State>)) ahead.push(index);
    }
    const guesses = guessed.flatMap((each, index) => (taken.has(each) ? [index] : []));
    return `${firstLeft} ${ahead} ${guesses} ${idOf(state)}`;
  }
}

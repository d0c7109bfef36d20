import { type Span, when } from '../history.ts';

/** An operation on an object that has one state at each moment, and its outcome. */
export interface Observed<State> {
  readonly span: Span;
  /** Describes the request and its response in reports. */
  readonly description: string;
  /**
   * Undefined if a caller learned the outcome. Otherwise the operation may have taken effect at any moment after its begin,
   * or never. Operations with the same effect have the same text.
   */
  readonly guess: string | undefined;
  /** Whether it leaves the state unchanged. */
  readonly isRead: boolean;
  /** Returns the state after this operation: the same object if unchanged; undefined if this outcome is impossible in `state`. */
  next(state: State): State | undefined;
}

/** The result of a search; `given up`: it reached none. */
export type Verdict =
  | { readonly is: 'explained' | 'given up' }
  /** Describes the operations that cannot be ordered where the search got farthest. */
  | { readonly is: 'unexplained'; readonly report: string };

/**
 * Searches for an order that explains all observations, in which each operation takes effect at one moment of its span: checks
 * that the history is *linearizable* (Herlihy and Wing). Uses the algorithm of Wing and Gong with Lowe's memoization.
 *
 * @param describeState returns the same text for equal states, and another for others
 * @param maxStates the number of search nodes after which the search gives up: many times as many as it needs when an order
 *   exists. Operations with an unknown outcome multiply the nodes
 */
export function explain<State>(
  observed: readonly Observed<State>[],
  first: State,
  describeState: (state: State) => string,
  maxStates = 20_000,
): Verdict {
  const byBegin = observed.toSorted((a, b) => a.span.begin - b.span.begin);
  const known = byBegin.filter(({ guess }) => guess === undefined);
  const guessed = byBegin.filter(({ guess }) => guess !== undefined);
  const taken = new Set<Observed<State>>();
  const visited = new Set<string>();
  let farthest:
    | { readonly state: string; readonly count: number; readonly next: readonly Observed<State>[] }
    | undefined;
  if (search(first, 0)) return { is: 'explained' };
  if (visited.size >= maxStates) return { is: 'given up' };
  const { state, next = [] } = farthest ?? {};
  const lines = next.map(({ description, span }) => `  ${when(span)} ${description}`);
  const report = `from the state\n${state || '  nothing'}\nno order is possible for\n${lines.join('\n')}`;
  return { is: 'unexplained', report };

  /** @param from all known operations before this index are taken */
  function search(state: State, from: number): boolean {
    const added: Observed<State>[] = [];
    const take = (each: Observed<State>) => {
      taken.add(each);
      added.push(each);
    };
    // A read can be taken as early as possible, because it rules out no other operation.
    for (let count = -1; count !== added.length; ) {
      count = added.length;
      for (const each of possible(from).known) if (each.isRead && each.next(state)) take(each);
    }
    let firstLeft = from;
    while (firstLeft < known.length && taken.has(known[firstLeft] as Observed<State>)) firstLeft += 1;
    if (firstLeft === known.length || continues(state, firstLeft)) return true;
    for (const each of added) taken.delete(each);
    return false;
  }

  function continues(state: State, firstLeft: number): boolean {
    const next = possible(firstLeft);
    const position = describePosition(state, firstLeft);
    if (visited.has(position) || visited.size >= maxStates) return false;
    visited.add(position);
    if (!farthest || taken.size >= farthest.count)
      farthest = { state: describeState(state), count: taken.size, next: next.known };
    // Trying one of several operations with the same effect is enough.
    const guesses = new Map(next.guessed.toReversed().map((each) => [each.guess, each]));
    for (const each of [...next.known, ...guesses.values()]) {
      const after = each.next(state);
      if (after === undefined || (after === state && each.guess !== undefined)) continue;
      taken.add(each);
      if (search(after, firstLeft)) return true;
      taken.delete(each);
    }
    return false;
  }

  /** Returns the operations that may be next: they began before any remaining operation ended. */
  function possible(from: number): { readonly known: Observed<State>[]; readonly guessed: Observed<State>[] } {
    const next: Observed<State>[] = [];
    let firstOver = Number.POSITIVE_INFINITY;
    for (let index = from; index < known.length; index += 1) {
      const each = known[index] as Observed<State>;
      if (each.span.begin > firstOver) break;
      if (taken.has(each)) continue;
      next.push(each);
      firstOver = Math.min(firstOver, each.span.end);
    }
    return { known: next, guessed: guessed.filter((each) => each.span.begin < firstOver && !taken.has(each)) };
  }

  /** Returns a memoization key: equal for search nodes from which the same states are reachable. */
  function describePosition(state: State, firstLeft: number): string {
    const ahead: number[] = [];
    for (let index = firstLeft; index < known.length; index += 1) {
      if (taken.has(known[index] as Observed<State>)) ahead.push(index);
    }
    const guesses = guessed.flatMap((each, index) => (taken.has(each) ? [index] : []));
    return `${firstLeft} ${ahead} ${guesses} ${describeState(state)}`;
  }
}

/** A system that moves from state to state in steps; the next step is nondeterministic. */
export interface System<State> {
  readonly initial: State;
  /** Returns every possible next step: a label, and the state after it. */
  steps(state: State): Iterable<readonly [label: string, next: State]>;
  /** Describes what is wrong with a state; undefined if nothing is. */
  fault(state: State): string | undefined;
  /** Whether no work is left. Such a state must be reachable from every state. */
  isSettled(state: State): boolean;
}

/** The result of an exhaustive search. */
export interface Exploration {
  /** The number of distinct states; when a fault was found, those visited until then. */
  readonly states: number;
  /** The first fault found, on a shortest path to a fault. */
  readonly fault?: { readonly what: string; readonly trace: readonly string[] };
}

/**
 * Visits every reachable state, breadth first, up to the first fault. States are equal if their JSON is. A state from
 * which no settled one can be reached is also a fault: `stuck`.
 */
export function explore<State>(system: System<State>): Exploration {
  const numbers = new Map<string, number>();
  const states: State[] = [];
  /** By state: the state and step by which it was first reached; and all its predecessors. */
  const reached: { readonly from: number; readonly label: string }[] = [];
  const before: number[][] = [];

  const visit = (state: State, from: number, label: string) => {
    const name = JSON.stringify(state);
    const known = numbers.get(name);
    const number = known ?? states.push(state) - 1;
    if (known === undefined) {
      numbers.set(name, number);
      reached.push({ from, label });
      before.push([]);
    }
    if (from >= 0) before[number]?.push(from);
  };
  const found = (what: string, number: number): Exploration => {
    const trace: string[] = [];
    for (let at = reached[number]; at && at.from >= 0; at = reached[at.from]) trace.unshift(at.label);
    return { states: states.length, fault: { what, trace } };
  };

  visit(system.initial, -1, '');
  // The list grows while it is iterated.
  for (const [number, state] of states.entries()) {
    const what = system.fault(state);
    if (what !== undefined) return found(what, number);
    for (const [label, next] of system.steps(state)) visit(next, number, label);
  }

  const settles = new Set(states.keys().filter((number) => system.isSettled(states[number] as State)));
  for (const number of settles) for (const earlier of before[number] ?? []) settles.add(earlier);
  const stuck = states.keys().find((number) => !settles.has(number));
  return stuck === undefined ? { states: states.length } : found('stuck', stuck);
}

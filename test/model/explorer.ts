/** Something that moves from state to state, a step at a time; which step comes next is anybody's guess. */
export interface System<State> {
  readonly initial: State;
  /** Every step that may come next: what happens, and the state after it. */
  steps(state: State): Iterable<readonly [label: string, next: State]>;
  /** What is wrong with a state; undefined when nothing is. */
  fault(state: State): string | undefined;
  /** Whether nothing is left to be done. Such a state must be within reach from everywhere. */
  isSettled(state: State): boolean;
}

/** What a complete search has found. */
export interface Exploration {
  /** How many different states there are; up to the fault, if there is one. */
  readonly states: number;
  /** The first fault on the shortest way there is to one. */
  readonly fault?: { readonly what: string; readonly trace: readonly string[] };
}

/**
 * Visits every state that can be reached, nearest first, up to the first fault. States are the same when their JSON is.
 * A state from which no settled one can be reached is a fault as well: `stuck`.
 */
export function explore<State>(system: System<State>): Exploration {
  const numbers = new Map<string, number>();
  const states: State[] = [];
  /** By state: the one it was first reached from, and how; all those it can be reached from. */
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
  // The list grows while it is walked.
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

import type { Rules } from './rules.ts';
import { type Answer, type Call, type Request, type Scenario, type Step, type World, withCaller } from './world.ts';

/** A call that works on its caller's request. */
export interface Work {
  readonly scenario: Scenario;
  readonly rules: Rules;
  readonly world: World;
  readonly caller: number;
  readonly call: Call;
  readonly request: Request;
}

/** A protocol for creating a lead. */
export interface Protocol {
  readonly startsAt: Call['at'];
  /**
   * Returns the possible next steps of a call. Each step is one message to the database, which is carried out or not.
   */
  steps(work: Work): Iterable<Step>;
}

/** Returns the world after a call has ended and its caller has the answer. */
export function answered({ world, caller, call, request }: Work, what: Answer['what'], lead?: number): World {
  const keyWasFree = !world.rows.some(({ key, durable }) => durable && key === request.key);
  const named = lead === undefined ? {} : { lead };
  return withCaller(world, caller, { at: 'answered', what, by: call.number, keyWasFree, ...named });
}

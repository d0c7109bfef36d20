import type { Rules } from './rules.ts';
import { type Answer, type Call, type Request, type Scenario, type World, withCaller } from './world.ts';

/** A call that works on its caller's request. */
export interface Work {
  readonly scenario: Scenario;
  readonly rules: Rules;
  readonly world: World;
  readonly caller: number;
  readonly call: Call;
  readonly request: Request;
}

/** Returns the world after a call has ended and its caller has the answer. */
export function answered({ world, caller, call, request }: Work, what: Answer['what'], lead?: number): World {
  const keyWasFree = !world.rows.some(({ key, durable }) => durable && key === request.key);
  const named = lead === undefined ? {} : { lead };
  return withCaller(world, caller, { at: 'answered', what, by: call.number, keyWasFree, ...named });
}

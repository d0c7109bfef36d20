import { regionSteps } from './claims.ts';
import { correctionSteps } from './corrections.ts';
import { createLead } from './create-lead.ts';
import type { System } from './explorer.ts';
import { PROMISES } from './invariants.ts';
import type { Protocol } from './protocol.ts';
import { RULES, type Rules } from './rules.ts';
import { callerSteps, databaseSteps, moverSteps } from './surroundings.ts';
import type { Request, Scenario, World } from './world.ts';

/** The protocol, the rules that it follows, and the promises that are not checked. */
export interface Design {
  readonly rules?: Partial<Rules>;
  readonly protocol?: Protocol;
  readonly without?: readonly (keyof typeof PROMISES)[];
}

/** All possible steps of a scenario, and the states that must never be reached. */
export function leadSystem(
  scenario: Scenario,
  { rules: changes = {}, protocol = createLead, without = [] }: Design = {},
): System<World> {
  const rules = { ...RULES, ...changes };
  const { requests } = scenario;
  const promises = Object.entries(PROMISES).filter(([name]) => !without.some((each) => each === name));
  return {
    initial: {
      callers: requests.map(() => ({ at: 'silent' })),
      movers: Array.from({ length: scenario.movers }, () => ({ at: 'idle' })),
      region: 0,
      rows: [],
      late: [],
      reservations: [],
    },
    *steps(world) {
      yield* callerSteps(rules, world, requests, protocol.startsAt);
      yield* databaseSteps(rules, world);
      yield* moverSteps(scenario, rules, world);
      yield* correctionSteps(scenario, rules, world);
      yield* regionSteps(scenario, world);
      for (const [caller, call] of world.callers.entries()) {
        if (!('number' in call)) continue;
        const work = { scenario, rules, world, caller, call, request: requests[caller] as Request };
        for (const [label, next] of protocol.steps(work)) yield [`caller ${caller}: ${label}`, next];
      }
    },
    fault: (world) => promises.find(([, isKept]) => !isKept(world, requests))?.[0],
    isSettled: ({ callers }) => callers.every(({ at }) => at === 'silent' || at === 'answered'),
  };
}

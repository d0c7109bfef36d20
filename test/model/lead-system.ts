import { regionSteps } from './claims.ts';
import { correctionSteps } from './corrections.ts';
import { creationSteps } from './create-lead.ts';
import type { System } from './explorer.ts';
import { PROMISES } from './invariants.ts';
import { RULES, type Rules } from './rules.ts';
import { callerSteps, databaseSteps, moverSteps } from './surroundings.ts';
import type { Request, Scenario, World } from './world.ts';

/** The rules that are followed, and the promises that are not checked. */
export interface Design {
  readonly rules?: Partial<Rules>;
  readonly without?: readonly (keyof typeof PROMISES)[];
}

/** All possible steps of a scenario, and the states that must never be reached. */
export function leadSystem(scenario: Scenario, { rules: changes = {}, without = [] }: Design = {}): System<World> {
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
    },
    *steps(world) {
      yield* callerSteps(rules, world, requests);
      yield* databaseSteps(rules, world);
      yield* moverSteps(scenario, rules, world);
      yield* correctionSteps(scenario, rules, world);
      yield* regionSteps(scenario, world);
      for (const [caller, call] of world.callers.entries()) {
        if (!('number' in call)) continue;
        const work = { scenario, rules, world, caller, call, request: requests[caller] as Request };
        for (const [label, next] of creationSteps(work)) yield [`caller ${caller}: ${label}`, next];
      }
    },
    fault: (world) => promises.find(([, isKept]) => !isKept(world, requests))?.[0],
    isSettled: ({ callers }) => callers.every(({ at }) => at === 'silent' || at === 'answered'),
  };
}

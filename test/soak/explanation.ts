import { explained, type Model, type Outcome, type Request } from './lead-model.ts';

/** A request and its outcome. */
export interface Observation {
  readonly request: Request;
  readonly outcome: Outcome;
}

/**
 * Returns a model of the service after concurrent requests if some order of them explains all outcomes. It does not
 * matter which order is found: the outcomes determine the last state of each lead.
 */
export function explanation(model: Model, observations: readonly Observation[]): Model | undefined {
  if (observations.length === 0) return model;
  for (const first of observations) {
    const next = explained(model, first.request, first.outcome);
    const rest = observations.filter((each) => each !== first);
    const last = next && explanation(next, rest);
    if (last) return last;
  }
  return undefined;
}

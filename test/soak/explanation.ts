import { explained, type Model, type Outcome, type Request } from './lead-model.ts';

/** A request and what came of it. */
export interface Observation {
  readonly request: Request;
  readonly outcome: Outcome;
}

/**
 * What a service knows after requests that were made at once, if some order of them explains all outcomes. Which of several
 * it is makes no difference: outcomes tell each lead's last state.
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

import type { Simulation } from '../simulation.ts';

/** An acknowledged lead, and when the acknowledgement arrived. */
export interface Acknowledged {
  readonly studioId: string;
  readonly id: string;
  readonly end: number;
}

/** Returns an entry for each acknowledgement; a lead may have several. */
export const acknowledgedIn = ({ history }: Simulation): Acknowledged[] =>
  history
    .of('request')
    .flatMap(({ answer, operation, studioId, span }) =>
      answer?.status === 201 && operation.name === 'create'
        ? [{ studioId, id: JSON.parse(answer.text).lead.id as string, end: span.end }]
        : [],
    );

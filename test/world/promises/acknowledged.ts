import type { Life } from '../life.ts';

/** A lead that was acknowledged, and when that was over. */
export interface Acknowledged {
  readonly studioId: string;
  readonly id: string;
  readonly end: number;
}

/** Every lead that was acknowledged, as often as it was. */
export const acknowledgedIn = ({ history }: Life): Acknowledged[] =>
  history
    .of('request')
    .flatMap(({ answer, operation, studioId, span }) =>
      answer?.status === 201 && operation.name === 'create'
        ? [{ studioId, id: JSON.parse(answer.text).lead.id as string, end: span.end }]
        : [],
    );

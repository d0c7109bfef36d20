import { idBytes, idFromBytes, makeToken, placeOf } from './token.ts';

/** Where an export has come to: everything up to this lead was sent. */
export interface ExportPosition {
  readonly studioId: string;
  readonly leadId: string;
}

const ID_BYTES = 16;

/**
 * Makes the token that leads on behind a lead.
 *
 * @param scope which studio's leads are exported; empty: those of all
 */
export const resumeTokenAfter = (scope: string, { studioId, leadId }: ExportPosition): string =>
  makeToken('export', scope, Buffer.concat([idBytes(leadId), Buffer.from(studioId)]));

/** The lead behind which an export goes on; undefined when the token is not one of ours for this scope. */
export function exportPosition(scope: string, token: string): ExportPosition | undefined {
  const place = placeOf('export', scope, token);
  if (place === undefined || place.length <= ID_BYTES) return undefined;
  return { studioId: place.toString('utf8', ID_BYTES), leadId: idFromBytes(place.subarray(0, ID_BYTES)) };
}

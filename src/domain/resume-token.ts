import { ID_BYTES, idBytes, idFromBytes, makeToken, positionOf } from './token.ts';

/** The position of an export: all leads up to this one were sent. */
export interface ExportPosition {
  readonly studioId: string;
  readonly leadId: string;
}

/**
 * Returns the token with which an export resumes after a lead.
 *
 * @param scope the studio that is exported; empty: all studios
 */
export const resumeTokenAfter = (scope: string, { studioId, leadId }: ExportPosition): string =>
  makeToken('export', scope, Buffer.concat([idBytes(leadId), Buffer.from(studioId)]));

/** Returns the lead after which an export resumes; undefined if the token was not issued for this scope. */
export function exportPosition(scope: string, token: string): ExportPosition | undefined {
  const position = positionOf('export', scope, token);
  if (position === undefined || position.length <= ID_BYTES) return undefined;
  return { studioId: position.toString('utf8', ID_BYTES), leadId: idFromBytes(position.subarray(0, ID_BYTES)) };
}

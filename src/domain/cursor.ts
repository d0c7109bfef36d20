import { ID_BYTES, idBytes, idFromBytes, makeToken, positionOf } from './token.ts';

/** The paginated lists of a studio. */
type ListName = 'leads' | 'sources' | 'resent' | 'leadsOfContact' | 'apiKeys';

/** Returns the token of the page that follows an id. It is valid only for this list of this studio. */
export const pageTokenAfter = (list: ListName, studioId: string, id: string): string =>
  makeToken(list, studioId, idBytes(id));

/**
 * Returns the id that a page follows; undefined if the token was not issued for this list of this studio.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, studioId: string, token: string): string | undefined {
  const position = positionOf(list, studioId, token);
  return position?.length === ID_BYTES ? idFromBytes(position) : undefined;
}

/** Returns the token of the page of studios that follows one of them. */
export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** Returns the id of the studio that a page follows; undefined if the token was not issued for this list. */
export const studioBeforePage = (token: string): string | undefined => positionOf('studios', '', token)?.toString();

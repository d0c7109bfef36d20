import { idBytes, idFromBytes, makeToken, placeOf } from './token.ts';

/** What a studio has lists of. */
type ListName = 'leads' | 'sources' | 'resent' | 'leadsOfContact';

const ID_BYTES = 16;

/** Makes the token of the page that follows an id. It only moves within the list of the studio that presents it. */
export const pageTokenAfter = (list: ListName, studioId: string, id: string): string =>
  makeToken(list, studioId, idBytes(id));

/**
 * The id that the page follows; undefined when the token is not one of ours for this list of this studio.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, studioId: string, token: string): string | undefined {
  const place = placeOf(list, studioId, token);
  return place?.length === ID_BYTES ? idFromBytes(place) : undefined;
}

/** Makes the token of the page of studios that follows one of them. */
export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** The id of the studio that the page follows; undefined when the token is not one of ours. */
export const studioBeforePage = (token: string): string | undefined => placeOf('studios', '', token)?.toString();

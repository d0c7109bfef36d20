import { ID_BYTES, idBytes, idFromBytes, makeToken, positionOf } from './token.ts';

/** The paginated lists of a studio. */
type ListName = 'leads' | 'sources' | 'resent' | 'leadsOfContact' | 'apiKeys';

/** Returns the token of the page that follows an id. It is valid only for this list, of this studio or contact. */
export const pageTokenAfter = (list: ListName, scope: string, id: string): string =>
  makeToken(list, scope, idBytes(id));

/**
 * Returns the id that a page follows; undefined if the token was not issued for this list of this scope.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, scope: string, token: string): string | undefined {
  const position = positionOf(list, scope, token);
  return position?.length === ID_BYTES ? idFromBytes(position) : undefined;
}

/** Returns the token of the page of studios that follows one of them. */
export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** Returns the id of the studio that a page follows; undefined if the token was not issued for this list. */
export const studioBeforePage = (token: string): string | undefined => positionOf('studios', '', token)?.toString();

/** Yields the pages of a list, one after the other, as long as the consumer requests them. */
export async function* eachPage<Page extends { readonly nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let page = await read(''); ; page = await read(page.nextPageToken)) {
    yield page;
    if (page.nextPageToken === '') return;
  }
}

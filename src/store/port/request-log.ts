import type { LoggedRequest } from '../../domain/request-log.ts';
import type { Page } from './page.ts';

export interface RequestLogStore {
  /** Stores requests by their ids. A request whose id is stored already stays as it is, and does not affect the others. */
  recordRequests(requests: readonly LoggedRequest[]): Promise<void>;

  /** Lists the requests of a studio, highest id first. Skips unreadable ones. */
  listRequests(studioId: string, before: string | null, limit: number): Promise<Page<LoggedRequest>>;

  /**
   * Removes requests of a studio, readable or not. Keeps the `newest` ones of those whose ids are at least `since`;
   * without `kept`, removes all.
   */
  removeRequests(studioId: string, kept?: { readonly since: string; readonly newest: number }): Promise<void>;
}

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isRequestId } from '../common/request-id.ts';

/** The header that names a request, in both directions. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Returns the caller's id for the request if it is a valid one, else a new one. @rule 2.5.requestId 7.request-id */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers[REQUEST_ID_HEADER];
  return isRequestId(given) ? given : randomUUID();
}
